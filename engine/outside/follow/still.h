/* A follower that does not move, and whom the leader waits for. */
#ifndef MVE_OUTSIDE_STILL_H
#define MVE_OUTSIDE_STILL_H

#include "engine/outside/monitor/monitor.h"

/* For how many ms a thread of the follower has not moved, and which. */
uint64_t still_look(struct monitor *m, struct version *v, pid_t *tid);
/* Says that the leader waits for a follower. */
void still_waits_look(struct monitor *m);

#endif
