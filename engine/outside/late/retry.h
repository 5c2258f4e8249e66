/* A follower that differed is replaced by a twin: --on-divergence retry. */
#ifndef MVE_OUTSIDE_RETRY_H
#define MVE_OUTSIDE_RETRY_H

#include "engine/outside/monitor/monitor.h"

/* It was dropped by a verdict. */
void retry_ended(struct version *v);
/* Those whose time has come. */
void retry_look(struct monitor *m);
/* For status; NULL: none was wanted. */
json_t *retry_json(const struct version *v);

#endif
