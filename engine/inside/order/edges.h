/* A follower's thread comes behind another, as its leader's did. */
#ifndef MVE_INSIDE_EDGES_H
#define MVE_INSIDE_EDGES_H

#include "engine/abi/edge.h"
#include "engine/inside/gate/thread.h"

/* Waits until the thread of the lane has come where the edge leads. */
void edge_wait(struct thread *t, uint64_t edge);
/* The same, before the thread meets an event that may have one. */
void edge_meet(struct thread *t, const struct event *e);

#endif
