/*
 * What clients sent last, kept by a follower with a sanitizer for the day that it
 * reports something: the finding is to have the request that led to it.  It is put
 * into the area (struct input_cell), so it is still there when the process is not.
 *
 * An input is what a call took from a connection that was accepted.  Each thread
 * takes cells by one addition and fills them alone; the monitor reads what is whole.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/stat.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/sample/inputs.h"

#define SPANS_MAX	64	/* of a vector */
#define CELLS_MAX	(INPUT_CELLS / 4)	/* of one input; the rest is not kept */
_Static_assert(!(INPUT_CELLS & (INPUT_CELLS - 1)), "places go round");
#define MSG_PEEK	2

static void cell_fill(const struct thread *t, uint64_t place, enum input_kind kind, uint64_t fd,
		      uint64_t from, uint64_t len, bool cut)
{
	struct area *a = (struct area *)boot.area;
	struct input_cell *c = &a->input[place % INPUT_CELLS];

	MUST(len || kind != INPUT_TAKEN);

	WITHDRAW(input_at, &c->at, 0);
	c->pid = t->pid;
	c->tid = t->tid;
	c->fd = (int32_t)fd;
	c->kind = (uint8_t)kind;
	c->cut = cut;
	c->len = (uint16_t)(len < INPUT_BYTES ? len : INPUT_BYTES);
	if (c->len && target_in(c->bytes, from, c->len))
		c->len = 0;
	/* The monitor reads the cell after it sees its place. */
	PUBLISH(input_at, &c->at, place + 1);
}

static void input_keep(const struct thread *t, enum input_kind kind, uint64_t fd, uint64_t from,
		       uint64_t len)
{
	struct area *a = (struct area *)boot.area;
	uint64_t cells = len ? (len + INPUT_BYTES - 1) / INPUT_BYTES : 1, place;

	if (cells > CELLS_MAX)
		cells = CELLS_MAX;
	place = __atomic_fetch_add(&a->inputs, cells, __ATOMIC_RELAXED);
	for (uint64_t i = 0; i < cells; i++, from += INPUT_BYTES, len -= INPUT_BYTES)
		cell_fill(t, place + i, kind, fd, from, len,
			  i + 1 == CELLS_MAX && len > INPUT_BYTES);
}

static void vector_keep(const struct thread *t, uint64_t fd, uint64_t at, uint64_t n, uint64_t left)
{
	uint64_t span[2];

	for (uint64_t i = 0; i < n && i < SPANS_MAX && left; i++) {
		if (target_in(span, at + i * sizeof(span), sizeof(span)))
			return;
		if (span[1] > left)
			span[1] = left;
		if (span[1])
			input_keep(t, INPUT_TAKEN, fd, span[0], span[1]);
		left -= span[1];
	}
}

static void message_keep(const struct thread *t, uint64_t fd, uint64_t at, uint64_t len)
{
	uint64_t head[4];	/* of struct msghdr: name, its length, vector, its length */

	if (!target_in(head, at, sizeof(head)))
		vector_keep(t, fd, head[2], head[3], len);
}

/* A thread that reads nothing itself works for what its creator has read. */
void inputs_born(const struct thread *t)
{
	if (boot.runtimes)
		input_keep(t, INPUT_BORN, (uint64_t)t->creator, 0, 0);
}

/* The call has been answered, and what it took lies in the program's memory. */
void inputs_note(const struct thread *t, const struct walk *w, long nr)
{
	const uint64_t *arg = w->args;
	uint64_t n = (uint64_t)w->result;

	if (w->result < 0)
		return;
	if (call_has(w->desc, TRAIT_ACCEPTS)) {
		fd_set_mark((int64_t)n, FD_INPUT, true);
		input_keep(t, INPUT_ACCEPTED, n, 0, 0);
	}
	if (!n || !fd_is((int64_t)arg[0], FD_INPUT))
		return;
	if (nr == __NR_read || (nr == __NR_recvfrom && !(arg[3] & MSG_PEEK)))
		input_keep(t, INPUT_TAKEN, arg[0], arg[1], n);
	else if (nr == __NR_readv)
		vector_keep(t, arg[0], arg[1], arg[2], n);
	else if (nr == __NR_recvmsg && !(arg[2] & MSG_PEEK))
		message_keep(t, arg[0], arg[1], n);
}

/* What a runtime writes to its symbolizer, by a pipe, is no report. */
static bool is_report(const struct thread *t)
{
	struct statx st = { 0 };
	long fd = (int32_t)t->frame.rdi;

	if (!caller_is_runtime(t))
		return false;
	return fd <= 2 || OWN6(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &st, 0) < 0 ||
	       ((st.stx_mode & S_IFMT) != S_IFIFO && (st.stx_mode & S_IFMT) != S_IFSOCK);
}

void report_tell(struct thread *t, long nr)
{
	if (nr == __NR_write && is_report(t))
		request_tell(t, REQ_REPORTED, t->frame.arg[1], t->frame.arg[2]);
	if (nr == __NR_exit_group && caller_is_runtime(t)) {
		request_tell(t, REQ_REPORTED, 0, 0);
		if (!t->following)
			crash_leave(t);
	}
}
