/* From follower to leader. */
#ifndef MVE_INSIDE_PROMOTE_H
#define MVE_INSIDE_PROMOTE_H

#include "engine/inside/gate/thread.h"

void follow_promoted(struct thread *t);

#endif
