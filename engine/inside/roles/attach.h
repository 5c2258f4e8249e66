/* Coming to a program that runs, and leaving it; most of it is asked by the monitor alone. */
#ifndef MVE_INSIDE_ATTACH_H
#define MVE_INSIDE_ATTACH_H

#include "engine/inside/gate/thread.h"

/* The call in the frame is done, or to be made again, and mve leaves the program. */
void leave_stand(struct thread *t);

#endif
