/* mve run --from-start: what the server tells from its start on is kept. */
#ifndef MVE_OUTSIDE_KEPT_H
#define MVE_OUTSIDE_KEPT_H

#include "engine/outside/monitor/monitor.h"

/* The first lane is open: it is kept from there on. */
void kept_begin(struct monitor *m);
/* Another version leads: nobody can begin at the start any more. */
void kept_end(struct monitor *m);
/* Why nobody can; NULL: one can. */
const char *kept_refused(const struct monitor *m);
/* The version, which has ended, is at the beginning of all lanes, and followed. */
void kept_follow(struct monitor *m, uint32_t version);

#endif
