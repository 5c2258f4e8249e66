/* Each call, to a file. */
#ifndef MVE_OUTSIDE_TRACE_H
#define MVE_OUTSIDE_TRACE_H

#include "engine/outside/monitor/monitor.h"

struct trace *trace_open(FILE *out);
void trace_request(struct monitor *m, const struct request *r);
void trace_close(struct trace *t);

#endif
