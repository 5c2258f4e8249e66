/* By which policy a follower's threads get a processor. */
#ifndef MVE_INSIDE_POLICY_H
#define MVE_INSIDE_POLICY_H

#include "engine/inside/gate/thread.h"

/* The process follows, or has followed and is about to lead. */
void policy_follow(struct thread *t);
void policy_lead(struct thread *t);

#endif
