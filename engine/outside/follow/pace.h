/* How far followers are behind in time, and since when one stands still. */
#ifndef MVE_OUTSIDE_PACE_H
#define MVE_OUTSIDE_PACE_H

#include "engine/outside/monitor/monitor.h"

#define PACE_EVEN_MS	200	/* so far behind counts as having read all */

/* Looked at with followers_look() */
void pace_look(struct monitor *m);
/* How old the oldest event is that it has not read; 0: it has read all. */
uint64_t pace_behind_ms(const struct monitor *m, const struct version *v);
/* For how long it has read nothing, though there is something; 0: it reads. */
uint64_t pace_still_ms(struct monitor *m, struct version *v);

#endif
