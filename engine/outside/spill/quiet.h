/* The spiller where it has nothing to do. */
#ifndef MVE_OUTSIDE_QUIET_H
#define MVE_OUTSIDE_QUIET_H

#include "engine/outside/monitor/monitor.h"

/* Chunks that the follower which is furthest behind has to read of the leader. */
uint32_t behind_most(const struct monitor *m, uint32_t leader);
/*
 * Until a thread of the leader finds no room, another leads, or for a while.  False: the kernel
 * cannot.
 */
bool sleep_until_full(const struct monitor *m, uint32_t leader);
/* It need not be the end of us: who goes on in the background is a copy of the monitor. */
void sleep_ends_with_parent(void);

#endif
