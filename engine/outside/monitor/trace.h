/* Each call, to a file. */
#ifndef MVE_OUTSIDE_TRACE_H
#define MVE_OUTSIDE_TRACE_H

#include "engine/outside/monitor/monitor.h"

struct trace *trace_open(FILE *out);
/* REPLY_LATER: the thread is held until there is room for its lines. */
int64_t trace_request(struct version *v, const struct request *r);
/* There is room for more. */
void trace_go_on(struct monitor *m);
/* Waits for who reads it, or for a signal that ends us. */
void trace_close(struct trace *t, int signal_fd);

#endif
