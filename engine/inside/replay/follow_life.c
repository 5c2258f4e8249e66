/*
 * Threads, processes and programs of a follower: twins of the leader's.  A child
 * is made for real and goes on in the lane of the leader's child, but every id
 * that the program sees is the leader's.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/life.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/replay/follow_life.h"
#include "engine/inside/state/children.h"
#include "engine/inside/state/take.h"

#define PATH_LOOKED	4096
#define NO_NUMBER	(-2L)

_Static_assert(sizeof(struct layout) <= sizeof(((struct request *)0)->call), "layout_note");

/* --- clone --------------------------------------------------------------------------- */

/*
 * An id that is the leader's, and a descriptor that only it has, are not asked for: with
 * `less`, before the call.
 */
static void clone_asks(struct thread *t, long nr, const struct clone_args *asked, bool less)
{
	struct clone_args args = *asked;

	if (!(asked->flags & CLONE_PIDFD) && !asked->set_tid_size)
		return;
	if (less) {
		args.flags &= ~(uint64_t)CLONE_PIDFD;
		args.set_tid = args.set_tid_size = 0;
	}
	if (nr == __NR_clone)
		t->frame.rdi = args.flags;
	else
		target_out(t->frame.rdi, &args,
			   t->frame.rsi < sizeof(args) ? t->frame.rsi : sizeof(args));
}

static void pidfd_give(long nr, const struct clone_args *asked, int64_t fd)
{
	uint64_t args[CALL_ARGS] = { 0 };
	int32_t number = (int32_t)fd;

	if (!(asked->flags & CLONE_PIDFD) || fd < 0)
		return;
	target_out(asked->pidfd, &number, sizeof(number));
	take_opened(fd);
	files_opened(call_find(nr), args, fd);
}

/*
 * The thread that had the lane is dead: the monitor would end the new one's, too.  Where that
 * will be one of `pid` it comes as long as this lives; a process comes by itself (0).
 */
static void cursor_await(uint32_t lane, int32_t pid)
{
	struct cursor *c = &streams_section(&streams, streams.self)->cursor[lane];

	MUST(lane < LANES);

	__atomic_store_n(&c->owner, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->pid, pid, __ATOMIC_RELAXED);
}

/*
 * Of a follower that came late: its leader's thread has ended behind the start, where nothing is
 * told of it, and has given up the lane.  Ours still reads there, and two cannot.
 */
static bool lane_is_anothers(uint32_t lane)
{
	const struct cursor *c = &streams_section(&streams, streams.self)->cursor[lane];

	MUST(lane < LANES);
	return CONSUME(cursor_source, &c->source) == ROW_START && c->life &&
	       CONSUME(cursor_done, &c->done) != c->life && c->owner &&
	       OWN3(__NR_tgkill, c->pid, c->owner, 0) != -ESRCH;
}

static long follow_clone(struct thread *t, long nr, const struct event *e)
{
	int32_t vtid = (int32_t)e->result;
	uint32_t lane = (uint32_t)e->arg[0], life = (uint32_t)e->arg[1];
	uint32_t source = t->reader.cursor->source;
	struct clone_args asked = clone_asked(t, nr);
	int64_t pidfd = (int64_t)e->arg[3];
	uint64_t seq = e->seq;
	bool copies = e->arg[2], missed = e->arg[4];
	long result;

	if (vtid < 0 || lane >= LANES) {
		follow_take(t);
		if (vtid >= 0)
			request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, 0);
		else if (copies)
			order_forked();
		return vtid;
	}
	if (lane_is_anothers(lane))
		request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, EBUSY);
	cursor_await(lane, asked.flags & CLONE_THREAD ? t->pid : 0);
	cursor_begin(&streams, lane, life, source);
	follow_take(t);
	child_ids_find(t, &asked);
	t->child_lane = lane;
	t->child_vtid = vtid;
	if (missed)	/* others worked while it was made */
		hold_give(t);
	if (copies)	/* a thread may be what another waits for */
		order_wait_all(t, seq);
	clone_asks(t, nr, &asked, true);
	do
		result = serve_special(t, nr);
	while (result == CALL_RESTART);
	clone_asks(t, nr, &asked, false);
	if (result < 0) {
		request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, (uint64_t)-result);
		return result;
	}
	if (copies)
		order_forked();
	pidfd_give(nr, &asked, pidfd);
	child_ids_parent(t, (int32_t)result, vtid);
	child_note(t, vtid, (int32_t)result, lane);
	return vtid;
}

/* --- exec and exit -------------------------------------------------------------------- */

static _Noreturn void lane_leave(struct thread *t, long nr, long status)
{
	MUST(t->following && t->lane < LANES);
	cursor_done(&streams, t->lane);
	room_give(&t->reader);
	t->has_lane = 0;
	t->following = 0;
	for (;;) {
		t->frame.rax = (uint64_t)nr;	/* it may have been an execve */
		t->frame.rdi = (uint64_t)status;
		serve_special(t, nr);
	}
}

/* For the monitor: what our program is to be laid out like. */
static void layout_note(struct thread *t)
{
	struct layout *like = (struct layout *)request_of(t)->call;
	struct reader r = t->reader;	/* only looks: the new program takes the event */

	r.ahead = true;
	if (!follow_payload(&r, like, sizeof(*like)))
		like->top = 0;
}

/* The number that is the path's last name, as in /proc/self/fd/7; -1: it is none. */
static long number_named(uint64_t path)
{
	long n = -1;
	char c;

	for (int i = 0; i < PATH_LOOKED && !target_in(&c, path + (uint64_t)i, 1) && c; i++) {
		bool digit = c >= '0' && c <= '9';

		if (c == '/')
			n = -1;
		else
			n = !digit || n == NO_NUMBER ? NO_NUMBER : (n < 0 ? 0 : n * 10) + c - '0';
		if (n > INT32_MAX)
			n = NO_NUMBER;
	}
	return n;
}

/* Descriptors by which a program is executed. */
static void exec_lend(struct thread *t, long nr)
{
	bool at = nr == __NR_execveat;
	long named = number_named(at ? t->frame.rsi : t->frame.rdi);

	if (named >= 0)
		files_lend(named);
	if (at && (int32_t)t->frame.rdi >= 0)
		files_lend((int32_t)t->frame.rdi);
}

/* The leader's thread has left the lane: its program has begun in another one. */
static enum over lane_is_left(void *what)
{
	const struct reader *r = &((const struct thread *)what)->reader;

	/* What was told before is seen. */
	return CONSUME(lane_state, &r->from->lane[r->index].state) == LANE_CLOSED ? OVER_YES :
										     OVER_PERHAPS;
}

/* How the leader's execve ended; NULL: it has none, or it moved, and t->exec_moves says so. */
static const struct event *exec_outcome(struct thread *t)
{
	const struct event *e = follow_event(t);

	if (!e || e->kind != EVENT_EXEC || e->result != EXEC_MOVES)
		return e;
	follow_take(t);
	e = follow_event_or(t, lane_is_left, t);
	t->exec_moves = !e && lane_is_left(t) == OVER_YES;
	return e;
}

/* In the program's place: what it is to be laid out like is known to it, or to the monitor. */
static long exec_twin(struct thread *t, long nr)
{
	long result;

	if (!t->exec_moves)
		layout_note(t);
	exec_lend(t, nr);
	result = serve_special(t, nr);	/* the new program takes the event */
	if (t->exec_moves)		/* it has not come to be, and its twin has */
		request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, EPERM);
	return result;
}

static bool exec_matches(struct thread *t, const struct call_desc *d, const struct event *call,
			 struct mismatch *m)
{
	uint64_t args[CALL_ARGS];
	struct walk w = { .args = args, .desc = d, .result = call->result };

	call_args(&t->frame, args);
	return match_memory(&t->reader, &w, false, m);
}

void life_compare(struct thread *t, long nr, const struct event *e)
{
	const struct call_desc *d = call_find(nr);
	struct mismatch m = { .what = DIFFERS_VALUE };
	bool same = call_bears(d) ? true :
		    call_ends(d) ? (int32_t)e->arg[0] == (int32_t)t->frame.rdi :
				   exec_matches(t, d, e, &m);

	if (!same && request_ask(t, REQ_VERDICT, VERDICT_DIVERGED, m.what,
				 (uint64_t)m.arg << 56 | m.offset) != ANSWER_IGNORE)
		OWN1(__NR_exit_group, 1);
}

/* What the leader's execve came to decides before ours is made. */
static long follow_exec(struct thread *t, long nr)
{
	const struct event *e;
	int64_t outcome;

	follow_take(t);
	e = exec_outcome(t);
	if (t->exec_moves)
		return exec_twin(t, nr);
	if (!e)
		return lead_call(t, nr);
	outcome = e->kind == EVENT_EXEC ? e->result : -ENOEXEC;
	if (outcome < 0)
		follow_take(t);
	if (outcome == CALL_RESTART)	/* a signal came first: it is next, then the same call */
		return PASSED;
	t->answered = outcome < 0;
	if (outcome < 0)
		return outcome;
	if (outcome == EXEC_UNHELD)
		lane_leave(t, __NR_exit_group, 0);
	return exec_twin(t, nr);
}

static long follow_exit(struct thread *t, long nr)
{
	follow_take(t);
	lane_leave(t, nr, (long)t->frame.rdi);
}

/* The event is of the same call. */
long follow_life(struct thread *t, long nr, const struct event *e)
{
	const struct call_desc *d = call_find(nr);

	if (call_bears(d))
		return follow_clone(t, nr, e);
	return call_ends(d) ? follow_exit(t, nr) : follow_exec(t, nr);
}
