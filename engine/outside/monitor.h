/*
 * The monitor: one process per session, the parent of the server.
 *
 * All of it runs in one thread, in the order in which io_uring hands events
 * out; a second thread only waits on the session's doorbell, which is a futex,
 * and turns it into an event.
 */
#ifndef MVE_OUTSIDE_MONITOR_H
#define MVE_OUTSIDE_MONITOR_H

#include <jansson.h>
#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/abi/area.h"
#include "engine/outside/audit.h"
#include "engine/outside/session.h"

struct run_options {
	const char *name;	/* NULL: made from the command */
	enum tier tier;
	enum role role;
	bool audit;
	const char *status_file;	/* final status is written here; or NULL */
	FILE *trace;		/* where a trace goes */
	char **argv;
};

#define TRACEES_MAX	256	/* execs under way at one time */

/* A thread that is seized because its execve has begun. */
struct tracee {
	pid_t tid;		/* 0: the row is free */
	uint32_t hidden;	/* enum hidden_bits, for the new program */
};

struct monitor {
	const struct run_options *options;
	struct session session;
	struct area *area;
	int area_fd;
	pid_t server;
	int server_status;
	bool server_ended;
	bool background;	/* the server has ended, others go on */

	struct io_uring ring;
	int signal_fd, control_fd, bell_fd;
	pthread_t bell_thread;

	struct tracee tracees[TRACEES_MAX];
	unsigned unheld;	/* programs that run without us */
	struct audit *audit;
	struct trace *trace;
};

/* Runs a session from its first program to its end; mve's exit status. */
int monitor_run(const struct run_options *o);

/* serve.c: the requests of the inside. */
void serve_requests(struct monitor *m);
void serve_child_events(struct monitor *m);
int serve_seize(struct monitor *m, pid_t tid, uint32_t hidden);

/* control.c: the other commands. */
int control_open(const struct session *s);
void control_accept(struct monitor *m, int fd);

/* status.c */
json_t *status_json(struct monitor *m);
void status_sum(const struct monitor *m, uint64_t sum[COUNT_ROWS][SLOT_CALLS]);
int status_threads(const struct monitor *m);

/* trace.c */
struct trace *trace_open(FILE *out);
void trace_request(struct monitor *m, struct slot *s);
void trace_close(struct trace *t);

#endif
