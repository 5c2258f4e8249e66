/*
 * The kernel's count of a session's calls (audit.h) beside the inside's.
 */
#ifndef MVE_OUTSIDE_WITNESS_H
#define MVE_OUTSIDE_WITNESS_H

#include <jansson.h>

#include "engine/outside/monitor/monitor.h"

/* Where the calls of an image at `base` come from. */
void witness_ranges(uint64_t base, struct audit_ranges *r);

/* Starts the witness in a session that runs already, and says so. */
json_t *witness_begin(struct monitor *m);

/* Both counts, call by call, and whether they agree. */
json_t *witness_json(struct monitor *m);

#endif
