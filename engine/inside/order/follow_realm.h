/* A follower whose twin has gone to other sections. */
#ifndef MVE_INSIDE_FOLLOW_REALM_H
#define MVE_INSIDE_FOLLOW_REALM_H

#include "engine/core/ring.h"
#include "engine/inside/gate/thread.h"

/* It has come to an EVENT_MOVED. */
void realm_follow(struct thread *t, const struct event *e);

#endif
