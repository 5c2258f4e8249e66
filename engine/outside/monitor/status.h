/* What a session says of itself. */
#ifndef MVE_OUTSIDE_STATUS_H
#define MVE_OUTSIDE_STATUS_H

#include "engine/outside/monitor/monitor.h"

json_t *status_json(struct monitor *m);
void status_sum(const struct version *v, uint64_t sum[COUNT_ROWS][SLOT_CALLS]);
int status_threads(const struct version *v);

#endif
