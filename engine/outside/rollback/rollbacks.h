/* Requests of a leader that are taken back (mve run --rollback): told, and counted. */
#ifndef MVE_OUTSIDE_ROLLBACKS_H
#define MVE_OUTSIDE_ROLLBACKS_H

#include "engine/outside/monitor/monitor.h"

/* REQ_ROLLBACK: its answer. */
int64_t rollback_serve(struct version *v, const struct request *r);
/* What there is to say when the session ends. */
void rollbacks_close(struct monitor *m);

#endif
