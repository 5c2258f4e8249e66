/*
 * One at a time.  Threads that agree by plain memory and bare atomics cannot be ordered from
 * their calls, for no call tells what one saw of another's.  In a session that was asked for it
 * they need not be: of a process' threads one alone works, who has the *baton*.  It gives that
 * up before each call that may wait (for a peer, for another thread, by time), and takes it
 * behind that; each taking is a turn, told in the lane (EVENT_BATON).  A follower's threads take
 * theirs by the same turns.  So all that a thread finds in memory is what it found in the leader,
 * whatever it was agreed by, and no lock is to be ordered beside that.
 *
 * What sleeps in a futex is a call that waits, too: what it answered is told with the turn, and
 * a follower's does not sleep there.
 *
 * The baton is a lock of the process' own, in each version, with a limit: one who computes for
 * long, or spins for what another is to do, loses it (`baton`), and works on beside the next.
 * What those two do is ordered no more than without it; the next call that waits ends that.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/table.h"
#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/now.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/rewind/stand.h"

#define WANTED	0x80000000u	/* somebody sleeps for it */
#define CALLS_MOST	16	/* that are told, while others want it */

#define LEAVES	0x40000000u	/* who had it is about to end (`leaving`) */
static struct {
	uint64_t at;
	uint32_t was;
} leaving;

static uint32_t baton;		/* who has it: its block's index + 1, and WANTED; 0: nobody */

bool baton_is_asked(void)
{
	return streams.conduct && streams.conduct->one_at_a_time;
}

static uint32_t name_of(const struct thread *t)
{
	return t->index + 1;
}

/* Threads say so of themselves: an image or a twin has another id, and all that they say. */
void baton_begin(struct thread *t)
{
	struct thread *o;

	if (!baton_is_asked() || t->takes_turns)
		return;
	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid)
			o->takes_turns = 1;
	t->baton = 1;
	PUBLISH(baton, &baton, name_of(t));
}

void baton_alone(struct thread *t)
{
	t->takes_turns = t->baton = t->baton_due = 0;
}

bool baton_applies(const struct thread *t)
{
	return t->has_lane && t->takes_turns;
}

bool baton_lets_go(const struct call_desc *d)
{
	return call_has(d, TRAIT_WAITS | TRAIT_YIELDS);
}

void baton_give(struct thread *t)
{
	uint32_t was = __atomic_load_n(&baton, __ATOMIC_RELAXED);

	if (!t->baton)
		return;
	t->baton = 0;
	/* Who takes it sees what was done; it may have been taken away. */
	while ((was & ~WANTED) == name_of(t) && !PUBLISH_IF(baton, &baton, &was, 0))
		;
	if (was == (name_of(t) | WANTED))
		OWN3(__NR_futex, &baton, FUTEX_WAKE_PRIVATE, 1);
}

/*
 * The kernel says that a thread has ended by a word that others look at (pthread_join).  So they
 * work on when it has said so, in all versions.
 */
void baton_leave(struct thread *t)
{
	uint32_t was = name_of(t), word;

	if (!t->baton || !t->clear_tid || target_in(&word, t->clear_tid, sizeof(word)) || !word) {
		baton_give(t);
		return;
	}
	leaving.at = t->clear_tid;
	leaving.was = word;
	t->baton = 0;
	while ((was & ~WANTED) == name_of(t) && !PUBLISH_IF(baton, &baton, &was, LEAVES | WANTED))
		;
}

/* It has ended; or that takes longer than all waits. */
static bool has_left(uint64_t waited)
{
	struct __kernel_timespec pause = { 0, (long long)PAUSE_IDLE_NS };
	uint32_t now;

	if (target_in(&now, leaving.at, sizeof(now)) || now != leaving.was)
		return true;
	OWN4(__NR_futex, leaving.at, FUTEX_WAIT, now, &pause);
	return waited >= WAIT_LONG_NS;
}

/* Who has it, and since when, by its own time. */
struct holder {
	uint32_t name;
	uint64_t since, cpu;
};

static uint64_t cpu_of(const struct thread *o)
{
	return o ? clock_ns(cpu_clock(o->tid)) : 0;
}

/*
 * It has worked for longer than others are to wait; or is in a call for as long, or has gone.
 * One that has had no processor is waited for.
 */
static bool is_over(struct thread *t, struct holder *h, uint32_t name, uint64_t now)
{
	const struct thread *o = block_live(name - 1);
	uint64_t cpu = cpu_of(o), limit = wait_limit(WAIT_baton);

	if (h->name != name) {
		*h = (struct holder){ name, now, cpu };
		return false;
	}
	if (!o || cpu - h->cpu >= limit)
		return true;
	if (now - h->since < limit)
		return false;
	h->since = now;
	return request_ask(t, REQ_RUNS, (uint64_t)o->tid, 0, 0) <= 0;
}

/*
 * A follower's does what its twin did, which has lost it, or has not: then it is waited for until
 * nothing in the process goes on.  One that has lost it in a call stands there without an event.
 */
static bool is_lost(struct thread *t, struct holder *h, uint32_t name, uint64_t now, bool lost)
{
	const struct thread *o = block_live(name - 1);

	if (lost && o && order_stands_till(o))
		return true;
	if (lost)
		return is_over(t, h, name, now);
	if (h->name != name)
		*h = (struct holder){ name, now, cpu_of(o) };
	if (!o || cpu_of(o) - h->cpu >= WAIT_LONG_NS)
		return true;
	if (now - h->since < WAIT_LONG_NS)
		return false;
	h->since = now;
	return !order_others_able(t);
}

enum taken { TAKEN_NOT, TAKEN, TAKEN_AWAY };

/* Not: the thread is asked to stand still.  `lost`: the leader's has taken it away. */
static enum taken acquire(struct thread *t, bool lost)
{
	struct holder h = { 0, 0, 0 };
	uint64_t begun = 0, sleep = PAUSE_FIRST_NS;
	bool away = false;
	uint32_t name = name_of(t), was = 0;

	while (!CONSUME_IF(baton, &baton, &was, name)) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		struct __kernel_timespec pause = { 0, (long long)sleep };

		if (!begun)
			begun = now;
		if (stand_look(t)) {
			h.name = was = 0;
			continue;
		}
		if (!t->following && t->park)
			return TAKEN_NOT;
		if ((was & ~WANTED) == LEAVES) {
			if (has_left(now - begun) && CONSUME_IF(baton, &baton, &was, name | WANTED))
				break;
			was = 0;
			continue;
		}
		if (was && (t->following ? is_lost(t, &h, was & ~WANTED, now, lost) :
					   is_over(t, &h, was & ~WANTED, now))) {
			away = CONSUME_IF(baton, &baton, &was, name | WANTED);
			if (away)
				break;
			was = 0;	/* whoever has it by now has just begun */
			continue;
		}
		if (was & WANTED || !was ||
		    __atomic_compare_exchange_n(&baton, &was, was | WANTED, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			OWN4(__NR_futex, &baton, FUTEX_WAIT_PRIVATE, was | WANTED, &pause);
		sleep = pause_longer(sleep);
		name = name_of(t) | WANTED;
		was = 0;
	}
	t->baton = 1;
	if (begun)
		wait_note(WAIT_baton, clock_ns(CLOCK_MONOTONIC) - begun, away && !lost);
	return away ? TAKEN_AWAY : TAKEN;
}

/* Where it is asked to stand still it takes it behind that, in the role that it has then. */
static void lead_take(struct thread *t, long result)
{
	enum taken got = acquire(t, false);
	uint64_t turn;
	struct event *e;

	t->baton_due = got == TAKEN_NOT;
	if (got == TAKEN_NOT)
		return;
	turn = turn_draw(LOCK_BATON_BUCKET);
	if (!stream_followed(t) || t->kept)
		return;
	e = event_begin(t, EVENT_BATON, 0, result);
	e->arg[0] = LOCK_BATON_BUCKET;
	e->arg[1] = turn;
	e->arg[2] = got == TAKEN_AWAY;
	e->arg[3] = e->arg[4] = 0;
	event_end(t);
}

void baton_meet(struct thread *t, const struct event *e)
{
	uint64_t turn = event_turn(e);
	bool signal = e->flags & EVENT_SIGNAL_NEXT, lost = e->arg[2];

	MUST(t->following);
	baton_give(t);
	turn_wait(t, LOCK_BATON_BUCKET, turn, 0);
	acquire(t, lost);
	turn_done(LOCK_BATON_BUCKET, turn);
	follow_take(t);
	if (signal) {
		e = follow_event(t);
		if (e && e->kind == EVENT_SIGNAL)
			follow_signal(t, e);
	}
}

/*
 * It has made many calls since it took the baton, and others want that: they are next.  In a
 * follower the turn stands in front of the call's event.
 */
void baton_yield(struct thread *t)
{
	struct __kernel_timespec pause = { 0, PAUSE_FIRST_NS };

	if (!t->baton || t->following || t->baton++ < CALLS_MOST)
		return;
	t->baton = 1;
	if (!(__atomic_load_n(&baton, __ATOMIC_RELAXED) & WANTED))
		return;
	baton_give(t);
	OWN2(__NR_nanosleep, &pause, 0);
	lead_take(t, 0);
}

static void follow_baton(struct thread *t, long result)
{
	const struct event *e = follow_event(t);

	if (e && event_is_baton(e))
		baton_meet(t, e);
	else if (!e && !t->following)
		lead_take(t, result);
}

bool baton_lost(struct thread *t)
{
	if (!t->baton || (__atomic_load_n(&baton, __ATOMIC_RELAXED) & ~WANTED) == name_of(t))
		return false;
	t->baton = 0;
	return true;
}

void baton_resume(struct thread *t)
{
	if (!t->baton_due)
		return;
	t->baton_due = 0;
	baton_take(t, 0);
}

long baton_take(struct thread *t, long result)
{
	/* Its handler comes first, and takes it behind a call of its own. */
	if (t->baton || result == CALL_RESTART || t->announced || !baton_applies(t))
		return result;
	if (t->following)
		follow_baton(t, result);
	else
		lead_take(t, result);
	return result;
}
