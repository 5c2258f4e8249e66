/* A follower's own query on a descriptor, asked of the leader's. */
#ifndef MVE_OUTSIDE_QUERY_H
#define MVE_OUTSIDE_QUERY_H

#include "engine/outside/monitor/monitor.h"

/* Of the leader's descriptors, in a follower's place. */
int64_t query_serve(struct version *v, const struct request *r);

#endif
