/* New programs. */
#ifndef MVE_INSIDE_EXEC_H
#define MVE_INSIDE_EXEC_H

#include "engine/inside/gate/thread.h"

/* A call by which a thread, process or program comes to be. */
long serve_life(struct thread *t, long nr);

#endif
