/* A server that was followed is alone again, so that it can be left: alone.c. */
#ifndef MVE_OUTSIDE_ALONE_H
#define MVE_OUTSIDE_ALONE_H

#include <stdbool.h>

#include "engine/outside/attach/guest.h"
#include "engine/outside/monitor/monitor.h"

/* Why it cannot be now, and what to do; NULL: it can. */
const char *alone_barred(struct monitor *m, const char **hint);

/*
 * Its threads come out of what they have begun in company, as far as that can be ended; false: one
 * does not come to stand.
 */
bool alone_begin(struct monitor *m);
/* It is not left after all. */
void alone_end(struct monitor *m);

/*
 * Of a process that stands, with its streams: the lock gate is two jumps to it.  What a thread
 * may meet of ours but the gate of calls it is soon behind: true, it is at such a place.
 */
bool alone_is_led(const struct guest *g);
/* A word of a stack that lock functions leave behind, and nobody comes back to. */
bool alone_is_stale(const struct guest *g, uint64_t word);
bool alone_passes(const struct guest *g, uint64_t rip);

#endif
