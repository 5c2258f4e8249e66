/*
 * mve trace: each call is shown as it is made, by the thread that asks us to
 * before and after it.  A line that another thread breaks into is ended with
 * "<unfinished ...>" and taken up again later, as strace does.
 *
 * Whoever reads the trace may be slow, have stopped, or not have come yet: a thread whose
 * lines there is no room for waits until there is, as it does under strace; the loop does not.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/session/outlet.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/trace.h"
#include "engine/outside/print/print.h"

#define TRACE_MS	INT_MAX	/* a thread waits as long as the reader does */

struct trace_row {
	struct call_print print;
	pid_t tid;
	bool entered;
};

struct trace {
	int to;			/* as the user gave it */
	int fd;			/* what is written by; -1: nobody reads the pipe yet, */
	bool awaits;		/* and for that is waited */
	struct outlet_wait wait;
	FILE *out;		/* of memory: */
	char *text;
	size_t len, at;		/* so much of it is written */
	int error;		/* of writing: no more is written */
	bool to_file;		/* every line begins with its thread's id */
	bool several;		/* more than one thread has been seen */
	pid_t first;
	struct trace_row *open;	/* whose line has no end yet */
	struct trace_row row[AREA_THREADS];
};

struct trace *trace_open(int to)
{
	struct trace *t = calloc(1, sizeof(*t));

	MUST(t);
	t->to_file = to >= 0;
	t->to = to < 0 ? STDERR_FILENO : to;
	t->fd = -1;
	t->out = open_memstream(&t->text, &t->len);
	MUST(t->out);
	return t;
}

/* 0, -EAGAIN: there is nobody who reads it, or why it cannot be written. */
static int reader_find(struct trace *t)
{
	int result;

	if (t->fd >= 0)
		return 0;
	result = t->awaits ? outlet_come(&t->wait) : outlet_open(t->to);
	if (result >= 0) {
		t->fd = result;
		return 0;
	}
	if (result == OUTLET_WAITS)
		return -EAGAIN;
	if (result != -ENXIO || t->awaits)
		return result;
	t->wait.fd = t->to;
	result = outlet_await(&t->wait);
	t->awaits = !result;
	return result ? result : -EAGAIN;
}

/* Writes what there is room for; false: the rest waits. */
static bool drain(struct trace *t)
{
	int result;

	MUST(fflush(t->out) == 0);
	MUST(t->at <= t->len);
	result = t->error ? 0 : reader_find(t);
	if (!result && !t->error)
		result = outlet_write(t->fd, t->text, t->len, &t->at);
	if (result == -EAGAIN)
		return false;
	if (result)
		t->error = result;
	rewind(t->out);
	t->at = 0;
	return true;
}

static long memory_of(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return memory_peek(*(pid_t *)ctx, addr, buf, len);
}

static void line_begin(struct trace *t, struct trace_row *row)
{
	int n = 0;

	MUST(row >= t->row && row < t->row + AREA_THREADS);

	if (t->open)
		fputs(" <unfinished ...>\n", t->out);
	if (t->to_file)
		n = fprintf(t->out, "%d ", row->tid);
	else if (t->several)
		n = fprintf(t->out, "[pid %5d] ", row->tid);
	row->print.column = n > 0 ? (unsigned)n : 0;
	t->open = row;
}

static void enter(struct trace *t, struct trace_row *row, const struct print_mem *mem,
		  const uint64_t *call)
{
	line_begin(t, row);
	print_enter(&row->print, mem, (int32_t)call[0], call + 1);
	fwrite(row->print.text, 1, row->print.len, t->out);
	row->entered = true;
	if (call_ends(call_find((int32_t)call[0]))) {
		size_t pad = row->print.len + row->print.column + 1;

		fprintf(t->out, ")%*s= ?\n", pad < 39 ? (int)(39 - pad) + 1 : 1, "");
		t->open = NULL;
		row->entered = false;
	}
}

static void leave(struct trace *t, struct trace_row *row, const struct print_mem *mem,
		  int64_t result)
{
	const struct call_desc *d = row->print.row;
	size_t before = row->print.len;

	if (!row->entered)
		return;
	if (t->open != row) {
		line_begin(t, row);
		fprintf(t->out, "<... %s resumed>", d ? d->name : "call");
	}
	print_exit(&row->print, mem, result);
	fwrite(row->print.text + before, 1, row->print.len - before, t->out);
	fputc('\n', t->out);
	t->open = NULL;
	row->entered = false;
}

static void signal_show(struct trace *t, struct trace_row *row, const uint64_t *info)
{
	struct call_print line = { 0 };
	uint8_t full[128] = { 0 };

	_Static_assert(sizeof(((struct request *)0)->call) == 64, "the head of a siginfo");

	memcpy(full, info, 64);
	line_begin(t, row);
	print_signal(&line, *(int *)full, full);
	fprintf(t->out, "%s\n", line.text);
	print_free(&line);
	t->open = NULL;
}

static struct pollfd room(const struct trace *t)
{
	return t->fd >= 0 ? (struct pollfd){ .fd = t->fd, .events = POLLOUT } :
			    (struct pollfd){ .fd = t->wait.comes, .events = POLLIN };
}

/* The loop comes round when there is room, or a reader; false: it cannot. */
static bool room_await(struct monitor *m)
{
	struct pollfd p = room(m->trace);

	return monitor_poll(m, p.fd, p.events, WAKE_TRACE, 0);
}

static int64_t lines_out(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;

	if (drain(m->trace) || !hold(v, r, TRACE_MS))
		return 0;
	return room_await(m) ? REPLY_LATER : 0;
}

void trace_go_on(struct monitor *m)
{
	if (!drain(m->trace) && room_await(m))
		return;
	for (uint32_t kind = REQ_TRACE_ENTER; kind <= REQ_TRACE_SIGNAL; kind++)
		held_void(m, kind, 0);
}

void trace_stay(struct monitor *m)
{
	if (!m->trace)
		return;
	m->trace->awaits = false;
	trace_go_on(m);
}

int64_t trace_request(struct version *v, const struct request *r)
{
	struct trace *t = v->monitor->trace;
	struct trace_row *row;
	pid_t tid = r->tid;
	struct print_mem mem = { memory_of, &tid };

	if (!t)			/* nobody asked for one: a program's own doing */
		return 0;
	MUST(r->slot < AREA_THREADS);
	row = &t->row[r->slot];
	if (!t->first)
		t->first = r->tid;
	t->several |= t->first != r->tid;
	row->tid = r->tid;
	if (r->kind == REQ_TRACE_ENTER)
		enter(t, row, &mem, r->call);
	else if (r->kind == REQ_TRACE_EXIT)
		leave(t, row, &mem, (int64_t)r->call[7]);
	else
		signal_show(t, row, r->call);
	return lines_out(v, r);
}

/* Somebody wants us to end: a signal that is not a child's. */
static bool told_to_end(int signal_fd)
{
	struct signalfd_siginfo s;

	while (read(signal_fd, &s, sizeof(s)) == sizeof(s))
		if (s.ssi_signo == SIGINT || s.ssi_signo == SIGTERM || s.ssi_signo == SIGHUP ||
		    s.ssi_signo == SIGQUIT)
			return true;
	return false;
}

/* Nobody else waits any more: the reader has the time that he wants. */
static void rest_write(struct trace *t, int signal_fd)
{
	struct pollfd p[2] = { [1] = { .fd = signal_fd, .events = POLLIN } };

	while (!drain(t)) {
		p[0] = room(t);
		poll(p, 2, -1);
		if (told_to_end(signal_fd)) {
			t->error = -EINTR;
			return;
		}
	}
}

void trace_close(struct trace *t, int signal_fd)
{
	if (!t)
		return;
	if (t->open)
		fputs(" <unfinished ...>\n", t->out);
	for (size_t i = 0; i < AREA_THREADS; i++)
		print_free(&t->row[i].print);
	rest_write(t, signal_fd);
	if (t->error && t->to_file)
		say_error("check the disk, or who reads it",
			  "the trace is cut short: not all could be written: %s",
			  strerror(-t->error));
	fclose(t->out);
	free(t->text);
	free(t);
}
