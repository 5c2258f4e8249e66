/* A session that was begun alone comes to have followers. */
#ifndef MVE_OUTSIDE_COMPANY_H
#define MVE_OUTSIDE_COMPANY_H

#include "engine/outside/monitor/monitor.h"

/*
 * The leader tells what it does from here on: NULL, or why not, and whether that goes by
 * itself.  How long it stood is added to *stood_us.
 */
const char *company_want(struct monitor *m, uint64_t *stood_us, bool *passes);
/* What its threads are to do: enum company. */
void company_word_set(struct version *v, uint32_t word);
/* REQ_COMPANY. */
int64_t company_serve(struct version *v, const struct request *r);

#endif
