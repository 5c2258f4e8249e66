/*
 * A follower waits for the next event of its lane, and takes it.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/gate/above.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/order/apart.h"
#include "engine/inside/order/follow_realm.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/order_tick.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/takeover/heir.h"
#include "engine/inside/takeover/takers.h"

#define LOOKS		4	/* before the first sleep: each takes the line from the leader */
#define SLEEP_FIRST_NS	50000
#define SLEEP_GROWS	4
#define SLEEP_LAST_NS	100000000	/* a full ring wakes us before */
#define SLEEP_LONG_NS	3000000		/* so does the leader when it begins to work again */
#define SLEEP_REST_NS	500000000	/* where nothing else can be waited for */

/* In a call that is no event, too: the thread may lead from here on, or follow another. */
void follow_ended(struct thread *t)
{
	uint32_t ended = CONSUME(conduct_bits, &streams.conduct->ended);

	if (ended >> t->reader.cursor->source & 1 && reader_at_end(&t->reader))
		above.ended(t);
}

void follow_broken(struct thread *t)
{
	request_ask(t, REQ_VERDICT, VERDICT_BROKEN, 0, 0);
	for (;;)
		change_wait(change_now(), SLEEP_LAST_NS);
}

/*
 * Without a monitor it can neither lead nor be heard.  But while versions are changed, one
 * that has its descriptors may still have to become the leader: it stays as long as its twin.
 */
bool follow_is_orphan(const struct thread *t)
{
	uint32_t source = t->reader.cursor->source;
	int32_t pid = t->reader.from->lane[t->lane].pid;

	if (monitor_alive() || take_is_done())
		return false;
	if (!(CONSUME(conduct_bits, &streams.conduct->ended) >> source & 1))
		return true;
	return heir_failed(source) || (pid > 0 && OWN2(__NR_kill, pid, 0) == -ESRCH);
}

void follow_skip_lane(struct thread *t)
{
	const struct event *e;

	while ((e = reader_peek(&t->reader))) {
		lock_passed(t, e);
		follow_take(t);
	}
}

/* The others lead already, and what is left here would be yesterday's answers. */
static bool is_left_behind(const struct thread *t)
{
	return take_is_done() && order_only_looks(t);
}

/*
 * An event that comes soon needs no wake-up; who misses one only sleeps to the end.
 * True: it was a long time.
 */
static bool sleep_wait(struct thread *t, uint32_t seen, uint64_t ns)
{
	uint8_t *asleep = &streams_section(&streams, streams.self)->asleep[t->lane], sleep;
	uint64_t since;

	since = clock_ns(CLOCK_MONOTONIC);
	if (ns < SLEEP_LONG_NS) {
		lane_wait(t->lane, seen, since + ns);
		return false;
	}
	sleep = (uint8_t)((*asleep + 1) | 1);
	__atomic_store_n(asleep, sleep, __ATOMIC_RELAXED);
	if (!reader_peek(&t->reader))
		lane_wait(t->lane, seen, since + ns);
	__atomic_store_n(asleep, sleep + 1, __ATOMIC_RELAXED);
	return clock_ns(CLOCK_MONOTONIC) - since >= SLEEP_LONG_NS;
}

static uint64_t sleep_longer(uint64_t ns)
{
	return ns * SLEEP_GROWS < SLEEP_LAST_NS ? ns * SLEEP_GROWS : SLEEP_LAST_NS;
}

/* The leader wakes when this call is over, or this lock is had: a rest. */
static bool may_rest(const struct thread *t)
{
	return lock_asked(t) || call_traits((long)t->frame.rax) & TRAIT_WAITS;
}

/* One who rested in this call the last time is likely to do it again. */
static uint64_t sleep_first(const struct thread *t)
{
	return t->rest == t->frame.rax + 1 && may_rest(t) ? SLEEP_REST_NS : SLEEP_FIRST_NS;
}

static uint64_t sleep_next(const struct thread *t, uint64_t ns)
{
	ns = sleep_longer(ns);
	return ns >= SLEEP_LONG_NS && may_rest(t) ? SLEEP_REST_NS : ns;
}

static void rest_note(struct thread *t, bool rested)
{
	if (rested)
		t->rest = t->frame.rax + 1;
	else if (t->rest == t->frame.rax + 1)
		t->rest = 0;
}

/*
 * Takes the looked-at event, and those behind it that were answered out of order;
 * the flags of the first.
 */
static uint8_t event_take(struct thread *t)
{
	uint8_t flags;

	if (apart_is_behind(t))
		return apart_take(t);
	flags = reader_take(&t->reader);
	for (apart_shift(t); t->ahead & 1; apart_shift(t))
		if (reader_peek(&t->reader))
			reader_take(&t->reader);
	return flags;
}

static bool is_clock_call(const struct thread *t)
{
	return !lock_asked(t) && call_has(call_find((int32_t)t->frame.rax), TRAIT_CLOCK);
}

/* What the leader does behind a fault is met when it is known whether it dies of it. */
static bool fault_passed(struct thread *t)
{
	uint32_t seen = change_now();

	if (fault_crashed(t->reader.cursor->source % VERSIONS)) {
		follow_skip_lane(t);
		return true;
	}
	if (follow_is_orphan(t))
		OWN1(__NR_exit_group, 1);
	order_rests();
	fault_wait(seen);
	return false;
}

static const struct event *event_wait(struct thread *t, bool (*over)(void *), void *what)
{
	uint64_t sleep = over ? SLEEP_FIRST_NS : sleep_first(t);

	for (uint32_t looks = 0;; looks++) {
		const struct event *e = reader_peek(&t->reader);
		uint32_t seen;

		if (!is_clock_call(t))
			order_tick_over(t);
		if (e && is_left_behind(t)) {
			follow_skip_lane(t);
			continue;
		}
		if (e && fault_stands(t)) {
			if (fault_passed(t))
				continue;
			if (over && over(what))
				return NULL;
			continue;
		}
		if (e && e->kind == EVENT_MOVED) {
			realm_follow(t, e);
			continue;
		}
		if (e && e->kind != EVENT_SEAM) {
			order_wait_fork(t, e->seq);
			order_wait(t, e->seq);
			if (e->flags & EVENT_TICK)
				order_tick(t, e);
			return e;
		}
		if (e) {
			t->slot->seams++;
			event_take(t);
			continue;
		}
		if (t->reader.broken)
			follow_broken(t);
		if (looks < LOOKS) {
			__builtin_ia32_pause();
			continue;
		}
		seen = change_now();
		follow_ended(t);
		if (!t->following || (over && over(what)))
			return NULL;
		if (reader_peek(&t->reader))
			continue;
		if (sleep >= SLEEP_LAST_NS && follow_is_orphan(t))
			OWN1(__NR_exit_group, 1);
		order_rests();
		rest_note(t, sleep_wait(t, seen, sleep));
		sleep = over ? sleep_longer(sleep) : sleep_next(t, sleep);
	}
}

const struct event *follow_event_or(struct thread *t, bool (*over)(void *), void *what)
{
	const struct event *e;

	/* A thread that forks sees all that was done before (order.c). */
	PUBLISH(thread_waits, &t->waits, 1);
	e = event_wait(t, over, what);
	__atomic_store_n(&t->waits, 0, __ATOMIC_RELAXED);
	return e;
}

const struct event *follow_event(struct thread *t)
{
	return follow_event_or(t, NULL, NULL);
}

/* Waits until more than `n` events are there; false: there will be no more, or it is over. */
bool follow_behind(struct thread *t, unsigned n, bool (*over)(void *), void *what)
{
	for (uint64_t sleep = SLEEP_FIRST_NS;;) {
		struct reader ahead = t->reader;
		const struct event *e = reader_peek(&ahead);
		uint32_t seen = change_now();

		for (unsigned i = 0; e && i < n; i++)
			e = reader_next(&ahead);
		if (e)
			return true;
		if (ahead.broken || streams.conduct->ended >> t->reader.cursor->source & 1 ||
		    (over && over(what)))
			return false;
		change_wait(seen, sleep);
		sleep = sleep_longer(sleep);
	}
}

uint8_t follow_take(struct thread *t)
{
	t->slot->taken++;
	return event_take(t);
}
