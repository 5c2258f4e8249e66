/* From follower to leader. */
#ifndef MVE_INSIDE_PROMOTE_H
#define MVE_INSIDE_PROMOTE_H

#include "engine/inside/gate/thread.h"

/* All of it is read: the thread leads, or reads on in the stream of who leads now. */
void stream_ended(struct thread *t);

#endif
