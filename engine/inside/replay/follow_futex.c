/*
 * A follower's own futexes.  Threads wake each other there without the stream, but a
 * signal that the stream brings for one that sleeps must end its sleep, as the real one
 * ended its twin's: so it sleeps in slices, and looks between them.  While it sleeps, the
 * others know that it will not come to what is told in its lane by itself (order.c).
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/signal.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/rest.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/replay/follow_futex.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/early.h"

#define SLICE_GROWS	4
#define NEVER		(~0ull)

struct sleep {
	uint32_t op;		/* as asked for */
	uint64_t until;		/* of `clock`; NEVER */
	int clock;
	bool limited;		/* it has a time to give up at */
};

/* False: it does not wait, or the kernel will refuse it. */
static bool sleep_asked(const struct thread *t, struct sleep *s)
{
	const struct frame *f = &t->frame;
	struct __kernel_timespec ts;
	uint32_t command = (uint32_t)f->rsi & FUTEX_CMD_MASK;

	*s = (struct sleep){ (uint32_t)f->rsi, NEVER, CLOCK_MONOTONIC, f->r10 != 0 };
	if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET)
		return false;
	if (command == FUTEX_WAIT && s->op & FUTEX_CLOCK_REALTIME)
		return false;
	if (s->op & FUTEX_CLOCK_REALTIME)
		s->clock = CLOCK_REALTIME;
	if (!s->limited)
		return true;
	if (target_in(&ts, f->r10, sizeof(ts)) || ts.tv_sec < 0 || ts.tv_nsec < 0 ||
	    ts.tv_nsec >= (long long)SECOND_NS || ts.tv_sec > (long long)(NEVER / 4 / SECOND_NS))
		return false;
	s->until = (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
	if (command == FUTEX_WAIT)
		s->until += clock_ns(s->clock) - (uint64_t)rest_gone(t);
	return true;
}

/* Sleeps till `end` at most. */
static long slice(struct thread *t, const struct sleep *s, uint64_t end)
{
	struct frame *f = &t->frame, was = *f;
	struct __kernel_timespec ts = { (long long)(end / SECOND_NS),
					(long long)(end % SECOND_NS) };
	long result;

	if ((s->op & FUTEX_CMD_MASK) == FUTEX_WAIT)
		f->r9 = FUTEX_BITSET_MATCH_ANY;
	f->rsi = (s->op & ~(uint32_t)FUTEX_CMD_MASK) | FUTEX_WAIT_BITSET;
	f->r10 = (uint64_t)&ts;
	result = call_serve(t, __NR_futex);
	f->rsi = was.rsi;
	f->r10 = was.r10;
	f->r9 = was.r9;
	return result;
}

/*
 * A signal has cut it short: the kernel makes the call again behind the handler that asks for
 * that, unless it has a limit; and always where a thread was only to stand still (no signal).
 */
static long sleep_cut(const struct thread *t, const struct sleep *s)
{
	uint32_t sig = (uint32_t)info_int(t->held_info, INFO_SIGNO);

	if (!sig)
		return CALL_RESTART;
	return !s->limited && sig <= SIGNALS && t->sig->action[sig].flags & SA_RESTART ?
	       CALL_RESTART : -EINTR;
}

static long sleep_end(struct thread *t, const struct sleep *s, const struct event *e)
{
	follow_signal(t, e);
	return sleep_cut(t, s);
}

static long sleep_sliced(struct thread *t, const struct sleep *s)
{
	for (uint64_t ns = PAUSE_LAST_NS;; ns = ns < PAUSE_ASLEEP_NS / SLICE_GROWS ?
						 ns * SLICE_GROWS : PAUSE_ASLEEP_NS) {
		uint64_t end = clock_ns(s->clock) + ns;
		const struct event *e = NULL;
		long result = slice(t, s, end < s->until ? end : s->until);
		bool over = result == -ETIMEDOUT && end < s->until;

		/* It leads meanwhile.  What comes between two slices comes while it sleeps. */
		if (!t->following && t->pending &&
		    (over || result == -EINTR || (result == CALL_RESTART && ns > PAUSE_LAST_NS)))
			return sleep_cut(t, s);
		if (!over && !(result == -EINTR && t->following && early_may_come()))
			return result;
		if (t->following)
			e = reader_peek(&t->reader);
		if (t->following && !e && follow_is_orphan(t))
			OWN1(__NR_exit_group, 1);
		if (t->following && !e)
			follow_ended(t);
		if (e && e->kind == EVENT_SIGNAL)
			return sleep_end(t, s, e);
		if (e)
			follow_told_asleep();
	}
}

long follow_local(struct thread *t)
{
	const struct event *e = follow_event(t);
	struct sleep s;
	long result;

	if (e && event_is_baton(e)) {
		result = e->result;
		baton_meet(t, e);
		return result;
	}
	if (e && e->kind == EVENT_SIGNAL && sleep_asked(t, &s))
		return sleep_end(t, &s, e);
	return FOLLOW_LEADS;
}

long follow_wakes(struct thread *t, long nr)
{
	const struct event *e;
	long result;

	while ((e = follow_event(t)) && event_is_turn(e))
		if (baton_meet(t, e))
			return CALL_RESTART;
	if (e && e->kind == EVENT_SIGNAL) {
		follow_signal(t, e);
		return CALL_RESTART;
	}
	if (!e || !event_wakes(e))
		return FOLLOW_LEADS;
	result = e->result;
	/* It may change what is there, too. */
	call_serve(t, nr);
	baton_meet(t, e);
	return result;
}

long follow_futex(struct thread *t)
{
	struct sleep s;
	long result;

	PUBLISH(thread_waits, &t->waits, WAITS_ASLEEP);
	__atomic_store_n(&t->slot->asleep, 1, __ATOMIC_RELAXED);
	result = sleep_asked(t, &s) ? sleep_sliced(t, &s) : call_serve(t, __NR_futex);
	__atomic_store_n(&t->slot->asleep, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->waits, 0, __ATOMIC_RELAXED);
	return result;
}
