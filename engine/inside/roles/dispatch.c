/*
 * The long way of a call: who serves it, in the role that its thread has.
 */
#include <asm/unistd.h>

#include "engine/abi/table.h"
#include "engine/abi/brief.h"
#include "engine/core/must.h"
#include "engine/inside/calls/private.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/locks/lock_gate.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/record/back.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/life.h"
#include "engine/inside/replay/answer.h"
#include "engine/inside/replay/elastic.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/replay/follow_futex.h"
#include "engine/inside/roles/attach.h"
#include "engine/inside/roles/dispatch.h"
#include "engine/inside/update/offline.h"
#include "engine/inside/roles/park.h"
#include "engine/inside/rollback/rollback.h"
#include "engine/inside/rules/overdue.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/signal/signals.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/ids.h"

_Static_assert(sizeof(((struct request *)0)->call) == 8 * sizeof(uint64_t), "trace_note fills it");

static void trace_note(struct thread *t, uint32_t kind, long result)
{
	uint64_t *call = request_of(t)->call;
	const struct frame *f = &t->frame;

	call[0] = f->rax;
	call[1] = f->rdi;
	call[2] = f->rsi;
	call[3] = f->rdx;
	call[4] = f->r10;
	call[5] = f->r8;
	call[6] = f->r9;
	call[7] = (uint64_t)result;
	request_tell(t, kind, 0, 0);
}

/* In no company. */
static __attribute__((noinline)) long serve_alone(struct thread *t, long nr)
{
	bool trace = boot.role == ROLE_TRACE && monitor_alive();
	long result;

	if (offline_is(t))
		return offline_call(t, nr);
	if (streams.conduct && is_stateless() && call_find(nr))
		scope_stray(t, t->frame.arg, scope_row(call_find(nr)).fds);
	if (trace)
		trace_note(t, REQ_TRACE_ENTER, 0);
	result = streams.conduct ? lead_laneless(t, nr) : serve_special(t, nr);
	if (trace)
		trace_note(t, REQ_TRACE_EXIT, result);
	return result;
}

static inline long serve_in_role(struct thread *t, long nr)
{
	if (t->following)
		return follow_call(t, nr);
	return t->has_lane ? lead_call(t, nr) : serve_alone(t, nr);
}

/*
 * Nothing is told of it: another version's thread may make no such call, so no turn ends with it.
 */
static bool is_untold(struct thread *t, const struct call_desc *d)
{
	return !d || caller_is_local(t, d->nr) || private_is(t, d);
}

/* The baton is given up before the call, or not; false: nothing is told of that. */
static bool turn_ends(struct thread *t, long nr, const struct call_desc *d)
{
	if (baton_lets_go(d) || clone_waits(t, nr))
		(call_ends(d) ? hold_leave : hold_give)(t);
	else if (d->class == CLASS_LOCAL)
		return false;
	else
		baton_yield(t);
	return true;
}

/* One at a time: while a call may wait others work, and behind one that is told this one does. */
static __attribute__((noinline)) long serve_in_turn(struct thread *t, long nr)
{
	const struct call_desc *d = call_find_variant(nr, t->frame.arg);
	bool untold = is_untold(t, d), told = !untold && turn_ends(t, nr, d);
	bool wakes = !untold && baton_wakes(d);
	long result;

	if (wakes && t->following) {
		result = follow_wakes(t, nr);
		if (result != FOLLOW_LEADS)
			return result;
	}
	if (told && d->class == CLASS_LOCAL && t->following) {
		result = follow_local(t);
		if (result != FOLLOW_LEADS)
			return result;
	}
	result = serve_in_role(t, nr);
	if (wakes && !t->following)
		baton_tell(t, result);
	if (told)
		result = baton_take(t, result);
	answer_turn(t, d, result);
	return result;
}

static inline long serve(struct thread *t, bool lock)
{
	long nr = (int32_t)t->frame.rax;

	if (lock)
		return lock_serve(t);
	if (nr == UPDATE_CALL)
		return offline_call(t, nr);
	return baton_applies(t) ? serve_in_turn(t, nr) : serve_in_role(t, nr);
}

long serve_call(struct thread *t)
{
	return serve(t, lock_asked(t));
}

bool serve_soft(struct thread *t, long nr, int64_t *value)
{
	if (t->following)
		return follow_told_value(t, nr, value);
	if (t->has_lane)
		lead_told(t, nr, *value);
	return false;
}

/* On the stack's top: see failed.c. */
void failed_serve(struct thread *t)
{
	long nr = (int32_t)t->frame.rax, made = t->made;

	if (t->has_lane && stream_followed(t))
		t->has_lane = 0;	/* no monitor has sent its followers away */
	t->away = 0;
	latches_leave(t);
	if (lock_asked(t))
		t->frame.rax = nr == LOCK_ASK ? ASK_UNORDERED : TOOK_DONE;
	else if (made != CALL_RESTART)
		t->frame.rax = (uint64_t)made;
	else
		t->frame.rax = (uint64_t)(ids_are_ours() ? serve_special(t, nr) : serve_call(t));
	t->restart = (int64_t)t->frame.rax == CALL_RESTART;
	if (t->restart)
		t->frame.rax = (uint64_t)nr;
	t->failing = 0;
}

/*
 * Followers look here for what comes before it; at a seam, and at local calls, they do not,
 * but for a futex, where a thread may sleep for good.
 */
static bool is_boundary(struct thread *t, bool lock)
{
	long nr = (int32_t)t->frame.rax;

	if (lock && nr == LOCK_LATER)
		return !signal_waits_on(t);
	return lock ? nr != SEAM_HERE : !call_is_local(nr) || nr == __NR_futex;
}

/* What was put off comes at the end of this call, which is made again. */
static long deferred_come(struct thread *t)
{
	MUST(!t->pending);
	turn_begin(t);
	t->deferred = 0;
	overdue_end(t);
	t->pending = 1;
	turn_end(t);
	return CALL_RESTART;
}

/* A signal was put off until now. */
static __attribute__((noinline)) long serve_deferred(struct thread *t, bool lock)
{
	if (!is_boundary(t, lock))
		return serve(t, lock);
	deferred_come(t);
	/* What was passed stands in the stream first: others relied on that. */
	return lock && t->frame.rax == LOCK_TOOK ? serve(t, lock) : CALL_RESTART;
}

/* In a program whose requests may be taken back. */
static __attribute__((noinline)) long serve_request(struct thread *t)
{
	long nr = (int32_t)t->frame.rax, result;

	if (nr == ROLLBACK_CALL)
		return back_asked(t);
	if (rollback_is_open(t) && back_before(t, nr))
		return 0;
	result = t->deferred ? serve_deferred(t, false) : serve(t, false);
	if (rollback_is_open(t) && result != CALL_RESTART)
		back_after(t, nr, result);
	return result;
}

/* Serves the call in the frame.  On CALL_RESTART the exit sees to it. */
void dispatch(struct thread *t)
{
	bool lock = lock_asked(t);
	uint64_t *count = lock ? &t->lock_calls :
			  &t->counts[t->tier * SLOT_CALLS + t->call_slot];
	long result;

	++*count;
	call_begins_again(t);
	t->made = CALL_RESTART;
	t->child_lane = CHUNK_NONE;
	result = rollback_of() && !lock ? serve_request(t)
					: t->deferred ? serve_deferred(t, lock) : serve(t, lock);
	t->restart = result == CALL_RESTART;
	if (t->restart)
		--*count;	/* it will come again */
	else
		t->frame.rax = (uint64_t)result;
	if (t->answered)
		t->counts[COUNT_ANSWERED * SLOT_CALLS + t->call_slot]++;
}

/* The call is served, and something waits: to stand still comes before a signal. */
void dispatch_exit(struct thread *t)
{
	MUST(t->busy && !t->at_boundary);
	/* What has no site is a function's of ours, and is soon behind it. */
	if (boot.leaving && t->frame.site_end && !info_int(t->held_info, INFO_SIGNO))
		leave_stand(t);
	if (!park_at_exit(t))
		signal_exit(t);
	else if (t->restart)
		dispatch(t);
}
