/* The old leader's descriptors: fetched and sent. */
#ifndef MVE_OUTSIDE_TAKE_H
#define MVE_OUTSIDE_TAKE_H

#include "engine/outside/monitor/monitor.h"

/*
 * The old leader's process stands: what it has open may be fetched; how long it took,
 * in us.  And: no more.
 */
uint64_t take_prepare(struct monitor *m, pid_t twin);
void take_over(void);
int64_t take_serve(struct version *v, const struct request *r);

#endif
