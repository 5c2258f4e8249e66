/* What befell a session: who stood still for what, and for how long; who joined, who was lost. */
#ifndef MVE_OUTSIDE_PAST_H
#define MVE_OUTSIDE_PAST_H

#include "engine/outside/monitor/monitor.h"

/* Somebody has stood for that. */
void past_stood(struct monitor *m, enum pause pause, uint64_t us);
/* One that came late follows. */
void past_joined(struct monitor *m);
/* A verdict has ended it: its name and v->why. */
void past_lost(const struct version *v);
/* For status: "pauses", "joins", "losses". */
void past_add(const struct monitor *m, json_t *status);

#endif
