/*
 * The follower: each call is matched with the next event of the thread's lane
 * and answered from it.  Nothing of what the follower does reaches the world.
 *
 * The match is elastic by class: queries and clocks of the leader that this
 * version does not make are passed over, those that only this version makes are
 * served here.  Everything else must be the same call with the same arguments
 * and the same content, or it is a divergence: the thread says so and waits for
 * the verdict.
 *
 * Real signals from outside are dropped (signals.c): the stream brings those that
 * the leader's handlers saw, at the same place between two calls.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/calls/ids_call.h"
#include "engine/inside/calls/private.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/fd/mirror.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/window.h"
#include "engine/inside/order/apart.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/record/form.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/replay/answer.h"
#include "engine/inside/replay/diverge.h"
#include "engine/inside/replay/elastic.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/replay/follow_futex.h"
#include "engine/inside/replay/follow_life.h"
#include "engine/inside/replay/follow_mmap.h"
#include "engine/inside/replay/follow_serve.h"
#include "engine/inside/replay/ignore.h"
#include "engine/inside/replay/own_query.h"
#include "engine/inside/rewind/image.h"
#include "engine/inside/rollback/rollback.h"
#include "engine/inside/rules/apart_meet.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/rules_object.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/sample/inputs.h"
#include "engine/inside/sample/seam.h"
#include "engine/inside/signal/signals.h"
#include "engine/inside/state/ids.h"

/* Is the call the leader's next one, behind queries that this version may not make? */
static bool comes_next(struct thread *t, struct walk *w, long nr)
{
	struct mismatch m;

	for (unsigned i = 0; i < AHEAD_EVENTS && follow_behind(t, i, NULL, NULL); i++) {
		struct reader ahead = t->reader;
		const struct event *e = reader_peek(&ahead);

		for (unsigned n = 0; e && n < i; n++)
			e = reader_next(&ahead);
		if (!e || !event_passable(e))
			return !e || e->kind == EVENT_SIGNAL || event_is_call(e, w, nr, &m);
	}
	return true;
}

/*
 * Whether a thread rings an eventfd again depends on whether the one that it wakes
 * has been there: it is asked by bare atomics.  What is said of it is not compared.
 */
static bool is_ring(const struct event *e)
{
	return !follow_is_strict() && e->kind == EVENT_CALL && e->call == __NR_write &&
	       inner_is_bell((long)e->arg[0]) && !(e->flags & EVENT_SIGNAL_NEXT);
}

static bool own_ring(const struct walk *w, long nr)
{
	return !follow_is_strict() && nr == __NR_write && inner_is_bell((long)w->args[0]) &&
	       w->args[2] == sizeof(uint64_t);
}

/* The event is another call's, or has another content. */
static enum step_result differs(struct thread *t, const struct event *e, struct walk *w, long nr,
				const struct mismatch *m, long *result)
{
	bool elastic = event_is_elastic(e) || is_ring(e) ||
		       (e->kind == EVENT_CALL && wait_is_rearming(e->call, e->arg[2]));
	long reply;

	MUST(t->following);	/* a leader agrees with itself */

	if (e->kind == EVENT_CALL && e->call == nr && files_drawn(t, w, nr))
		return STEP_AGAIN;
	if (wait_is_rearming(nr, w->args[2])) {
		t->answered = 1;
		*result = 0;
		return STEP_OWN;
	}
	/* A query may be for what comes behind a call that a rule adds. */
	if (rules_given() && !(elastic && comes_next(t, w, nr))) {
		enum step_result step = rules_meet_unexpected(t, w, nr, result);

		if (step != STEP_NO_RULE)
			return step;
	}
	if (elastic) {
		follow_take(t);
		return STEP_AGAIN;
	}
	if (own_ring(w, nr)) {
		t->answered = 1;
		*result = sizeof(uint64_t);
		return STEP_OWN;
	}
	reply = follow_diverged(t, w, nr, m->what, m);
	if (reply == ANSWER_IGNORE)
		return ignore_difference(t, e, w, nr, result);
	if (reply != ANSWER_RETRY)
		OWN1(__NR_exit_group, 1);
	return STEP_AGAIN;
}

/* Takes what was answered out of order, and all before it: nobody will ask for that any more. */
static void ahead_take(struct thread *t)
{
	const struct event *e;

	while (t->ahead && (e = reader_peek(&t->reader))) {
		if (!(t->ahead & 1))
			lock_passed(t, e);
		follow_take(t);
	}
}

/* Meets one event; STEP_AGAIN: the next one is to be looked at. */
static enum step_result meet(struct thread *t, const struct event *e, struct walk *w, long nr,
			     long *result)
{
	struct mismatch m = { DIFFERS_CALL, 0, 0 };

	if (e->kind == EVENT_SIGNAL) {
		follow_signal(t, e);
		*result = CALL_RESTART;
		return STEP_DONE;
	}
	if (event_is_baton(e)) {
		*result = CALL_RESTART;
		return baton_meet(t, e) ? STEP_DONE : STEP_AGAIN;
	}
	if (e->kind != EVENT_CALL && !(event_aside(e) && call_is_elastic(w->desc))) {
		if (event_is_mutex(e))
			image_lost(t, LOSS_LOCK, e->arg[2]);
		lock_passed(t, e);
		if (e->kind == EVENT_FILE)
			mirror_placed(e);
		follow_take(t);
		return STEP_AGAIN;
	}
	if (call_is_elastic(w->desc)) {
		bool signal = false, told = answer_elastic(t, w, nr, result, &signal);

		if (signal) {
			ahead_take(t);
			follow_signal_next(t, nr, *result);
		}
		if (t->ahead & 1)
			follow_take(t);
		if (!told && ahead_full(t, e)) {
			follow_take(t);
			return STEP_AGAIN;
		}
		if (!told && rules_given()) {
			enum step_result step = rules_meet_unexpected(t, w, nr, result);

			if (step != STEP_NO_RULE)
				return step;
		}
		if (!told)
			*result = own_query(t, nr);
		return told ? STEP_DONE : STEP_OWN;
	}
	if (e->flags & EVENT_PASSED && !(event_is_call(e, w, nr, &m) && accept_is_over(t, e))) {
		follow_take(t);
		return STEP_AGAIN;
	}
	if (event_is_call(e, w, nr, &m)) {
		*result = answer_call(t, w, e, nr);
		if (*result == PASSED)
			return STEP_AGAIN;
		if (*result != -ENOTUNIQ)
			return STEP_DONE;
		m = t->mismatch;
	}
	return differs(t, e, w, nr, &m, result);
}

/* The leader's request has failed, and this version's has not: it is taken back all the same. */
static long follow_back(struct thread *t)
{
	static const char why[] = "its leader's was, and it has no checkpoint of that request";

	if (!rollback_told(t))
		request_ask(t, REQ_ROLLBACK, ROLLBACK_NOT, 0, (uint64_t)why);
	while (!rollback_told(t))
		request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, 0);
	follow_take(t);
	return 0;
}

static long stream_meet(struct thread *t, struct walk *w, long nr)
{
	struct window_row *row = window_note(t, w->args, nr);
	over_test *over = call_is_elastic(w->desc) ? look_over : NULL;
	struct look look = { t, { .kind = WAIT_look } };
	enum step_result step;
	long result = 0;

	for (;;) {
		const struct event *e;

		if (rules_given())
			apart_restore(t);
		step = rules_given() ? rules_meet_first(t, w, nr, &result) : STEP_NO_RULE;
		if (step == STEP_DONE || step == STEP_OWN) {
			window_end(row, result, ROW_OWN);
			return result;
		}
		e = follow_event_or(t, over, &look);
		if (e && apart_given(t) &&
		    apart_meet(t, w, nr, &e, &result) == APART_ANSWERED) {
			t->answered = 1;
			window_end(row, result, ROW_OWN);
			return result;
		}
		if (!e && t->following) {
			result = own_query(t, nr);
			window_end(row, result, ROW_OWN);
			return result;
		}
		if (!e) {
			rules_forget(t);
			return lead_call(t, (int32_t)t->frame.rax);
		}
		window_event(t, row, e);
		if (e->kind == EVENT_BACK)
			return follow_back(t);
		if (w->desc && w->desc->class == CLASS_LIFE && e->kind == EVENT_CALL &&
		    e->call == nr) {
			life_compare(t, nr, e);
			window_end(row, e->result, ROW_ANSWERED);
			result = follow_life(t, nr, e);
			if (result == PASSED)
				continue;
			return result;
		}
		step = rules_given() && e->kind == EVENT_CALL ? rules_meet(t, w, nr, &result)
							      : STEP_NO_RULE;
		if (step == STEP_NO_RULE)
			step = meet(t, e, w, nr, &result);
		if (step == STEP_AGAIN)
			continue;
		window_end(row, result, step == STEP_OWN ? ROW_OWN : ROW_ANSWERED);
		return result;
	}
}

static long follow_stream(struct thread *t, struct walk *w, long nr)
{
	long result = stream_meet(t, w, nr);

	if (rules_given())
		apart_restore(t);
	return result;
}

/*
 * A call that no twin has.  Masks stay the program's: a runtime that blocks signals
 * for a while would be seen by the program's own calls, and there are none to block.
 */
static long untold_call(struct thread *t, long nr)
{
	const struct call_desc *d = call_find(nr);
	long result;

	if (nr == __NR_rt_sigprocmask && boot.runtimes)
		t->frame.rsi = 0;
	report_tell(t, nr);
	result = d ? ids_call(t, d, nr) : call_serve(t, nr);
	if (result == -ENOENT && call_has(d, TRAIT_OPENS))
		result = mirror_loaded(t, nr);
	return result;
}

static long follow_walked(struct thread *t, struct walk w, long nr);

static __attribute__((noinline)) long follow_kept(struct thread *t, struct walk w, long nr)
{
	struct sent sent;

	step_keep(&w, &sent);
	return follow_walked(t, w, nr);
}

long follow_call(struct thread *t, long nr)
{
	uint64_t args[CALL_ARGS];
	struct walk w;
	long result;

	if (t->faulting)
		fault_look(t);
	nr = call_walk(t, &w, args, nr);
	w.room = room_before(&w);
	result = w.desc && step_aliases(&w) ? follow_kept(t, w, nr) : follow_walked(t, w, nr);
	again_leave(t);
	return result;
}

static long follow_walked(struct thread *t, struct walk w, long nr)
{
	const uint64_t *args = w.args;
	long result = 0;

	if (seam_opened(t, &w))
		return -ENOENT;
	if (signal_asks(t, nr, &result))
		return result;
	if (file_left(w.desc, args, &result)) {
		follow_gone(t, &w);
		t->answered = 1;
		return result;
	}
	if (nr == __NR_set_tid_address) {	/* ld.so's, too: libc keeps the id */
		call_serve(t, nr);
		return t->vtid;
	}
	if (w.desc && (w.desc->class != CLASS_LOCAL || nr == __NR_mmap) ? caller_is_local(t, nr) :
									  local_site(t))
		return untold_call(t, nr);
	if ((private_count || call_has(w.desc, TRAIT_OPENS)) && private_call(t, nr, &result))
		return result;
	if (rules_given() && w.desc && w.desc->class == CLASS_LOCAL &&
	    rules_meet_local(t, &w, nr, &result) != STEP_NO_RULE)
		return result;
	if (nr == __NR_mmap)
		return follow_mmap(t);
	if (nr == __NR_futex && w.desc && w.desc->class == CLASS_LOCAL)
		return follow_futex(t);
	if (!w.desc)				/* the kernel has none either */
		return call_serve(t, nr);
	if (w.desc->class == CLASS_LOCAL)
		return ids_call(t, w.desc, nr);
	return follow_stream(t, &w, nr);
}

/* The stream's word on how the execve ended that brought us here. */
void follow_begin(struct thread *t)
{
	const struct event *e;

	MUST(t->has_lane && t->following && t->lane < LANES);

	reader_attach(&t->reader, &streams, t->lane);
	t->reader.cursor->owner = t->tid;
	t->reader.cursor->pid = t->pid;
	if (boot.vpid)
		t->vpid = t->vtid = boot.vpid;
	ids_ready(t);
	if (!t->reader.pos && !(boot.hidden & HIDDEN_MOVES))
		return;
	e = follow_event(t);
	if (e && e->kind == EVENT_EXEC)
		follow_take(t);
}
