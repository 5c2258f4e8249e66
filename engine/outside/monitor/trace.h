/* Each call, to a file. */
#ifndef MVE_OUTSIDE_TRACE_H
#define MVE_OUTSIDE_TRACE_H

#include "engine/outside/monitor/monitor.h"

/* To a file, or -1: to standard error. */
struct trace *trace_open(int to);
/* REPLY_LATER: the thread is held until there is room for its lines. */
int64_t trace_request(struct version *v, const struct request *r);
/* There is room for more, or somebody reads the pipe now. */
void trace_go_on(struct monitor *m);
/* In a copy of the monitor: what waits for a reader or for room is the original's. */
void trace_stay(struct monitor *m);
/* Waits for who reads it, or for a signal that ends us. */
void trace_close(struct trace *t, int signal_fd);

#endif
