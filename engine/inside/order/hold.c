/*
 * The baton itself: a word of the process, in each version.  Who has it works; who wants it sleeps
 * on the word.  It has a limit: one who computes for long, or spins for what another is to do,
 * loses it (`baton`), and works on beside the next.
 *
 * A leader's thread may lend it: while it is in a call that is told, others take it as soon as
 * that call sleeps, but for a disk, which may yet read what they are about to change.  Nothing is
 * lost by that: behind the call it finds so (hold_back), and takes it anew, which is told.  Outside
 * of such a call it is not taken from one that waits for mve itself (for room in the ring, for the
 * monitor), nor for a page.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/request.h"
#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/now.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/order.h"
#include "engine/inside/rewind/stand.h"

#define WANTED	0x80000000ull	/* somebody sleeps for it */
#define LEAVES	0x40000000ull	/* who had it is about to end (`leaving`) */
#define LENT	0x20000000ull	/* who has it is in a call that is told */
#define LENDS	0x1fff0000ull	/* counts: a call is told from the next one */
#define NAME	0x0000ffffull
#define WORD	0xffffffffull	/* all of these: the futex */
#define TAKE	(1ull << 32)	/* counts: it is taken anew, by whomever */
#define PASSED_MOST	16	/* takes by others, while one sleeps for it */
_Static_assert(AREA_THREADS < NAME, "each has a name");

static struct {
	uint64_t at;
	uint32_t was;
} leaving;

/* Who has it: its block's index + 1, and the bits; 0: nobody.  And how often it was taken. */
static uint64_t baton;
static uint32_t lends;		/* who has it counts */
static uint32_t sleepers;	/* threads that wait for it */
static uint32_t passed;		/* so often it was taken by others meanwhile */

static uint64_t word_now(void)
{
	return __atomic_load_n(&baton, __ATOMIC_RELAXED);
}

static uint32_t name_of(const struct thread *t)
{
	return t->index + 1;
}

void hold_begin(struct thread *t)
{
	t->baton = 1;
	PUBLISH(baton, &baton, name_of(t));
}

void hold_alone(void)
{
	baton = sleepers = passed = 0;
}

bool hold_is_wanted(void)
{
	return __atomic_load_n(&baton, __ATOMIC_RELAXED) & WANTED;
}

void hold_give(struct thread *t)
{
	uint64_t was = word_now();

	if (!t->baton)
		return;
	t->baton = 0;
	/* Who takes it sees what was done; it may have been taken away. */
	while ((was & NAME) == name_of(t) && !PUBLISH_IF(baton, &baton, &was, was & ~WORD))
		;
	if ((was & NAME) == name_of(t) && was & WANTED)
		OWN3(__NR_futex, &baton, FUTEX_WAKE_PRIVATE, 1);
}

void hold_lend(struct thread *t)
{
	uint64_t was = word_now();

	MUST(!t->following);
	lends += LENDS & -LENDS;
	while (t->baton && (was & NAME) == name_of(t) &&
	       !PUBLISH_IF(baton, &baton, &was, (was & ~LENDS) | LENT | (lends & LENDS)))
		;
}

bool hold_back(struct thread *t)
{
	uint64_t was = word_now();

	while (t->baton && (was & NAME) == name_of(t) && was & LENT &&
	       !CONSUME_IF(baton, &baton, &was, was & ~LENT))
		;
	t->baton = t->baton && (was & NAME) == name_of(t) ? t->baton : 0;
	return t->baton;
}

/*
 * The kernel says that a thread has ended by a word that others look at (pthread_join).  So they
 * work on when it has said so, in all versions.
 */
void hold_leave(struct thread *t)
{
	uint64_t was = word_now();
	uint32_t word;

	/* Who has lost it writes over nobody's word. */
	if (!t->baton || (was & NAME) != name_of(t) || !t->clear_tid ||
	    target_in(&word, t->clear_tid, sizeof(word)) || !word) {
		hold_give(t);
		return;
	}
	__atomic_store_n(&leaving.at, t->clear_tid, __ATOMIC_RELAXED);
	__atomic_store_n(&leaving.was, word, __ATOMIC_RELAXED);
	t->baton = 0;
	while ((was & NAME) == name_of(t) &&
	       !PUBLISH_IF(baton, &baton, &was, (was & ~WORD) | LEAVES | WANTED))
		;
}

/*
 * It has ended; or that takes longer than all waits.  The kernel wakes one who sleeps on the word:
 * we pass it on, for a thread of the program's that came after us sleeps there without an end.
 * By then another may have taken the baton, and leave: what is read here is of one who leaves where
 * the baton's word is still the same.
 */
static bool has_left(uint64_t waited)
{
	const uint64_t at = __atomic_load_n(&leaving.at, __ATOMIC_RELAXED);
	const uint32_t was = __atomic_load_n(&leaving.was, __ATOMIC_RELAXED);
	struct __kernel_timespec pause = { 0, (long long)PAUSE_IDLE_NS };
	uint32_t now;

	if (target_in(&now, at, sizeof(now)) || now != was)
		return true;
	if (!OWN4(__NR_futex, at, FUTEX_WAIT, now, &pause))
		OWN3(__NR_futex, at, FUTEX_WAKE, 1);
	return waited >= WAIT_LONG_NS;
}

/* Who has it, since when, by its own time, and when we look next whether it runs. */
struct holder {
	uint64_t word, since, cpu, look;
};

static const struct thread *holder_of(uint64_t word)
{
	return block_live((word & NAME) - 1);
}

static uint64_t cpu_of(const struct thread *o)
{
	return o ? clock_ns(cpu_clock(o->tid)) : 0;
}

/* It waits for mve: those for whom the baton would be taken would wait for that, too. */
static bool waits_for_us(const struct thread *o)
{
	return CONSUME(thread_waits, &o->waits) == WAITS_FULL || request_awaited(o);
}

/* It has taken it anew, or is in another call, which is another reason to have it. */
static void holder_see(struct holder *h, uint64_t word, uint64_t now, uint64_t cpu)
{
	if (!h->word || (h->word ^ word) / TAKE)
		*h = (struct holder){ 0, now, cpu, 0 };
	if (h->word != word)
		h->look = now + (word & LENT ? PAUSE_FIRST_NS : wait_limit(WAIT_baton));
	h->word = word;
}

/*
 * It has worked for longer than others are to wait, or waits for something that is not ours, or
 * has gone.  One that has had no processor is waited for, and one that wants a page or a disk, but
 * for longer than all waits.
 */
static bool is_over(struct thread *t, struct holder *h, uint64_t word, uint64_t now)
{
	const struct thread *o = holder_of(word);
	uint64_t cpu = cpu_of(o), limit = wait_limit(WAIT_baton);
	long runs;

	holder_see(h, word, now, cpu);
	if (!o || cpu - h->cpu >= limit)
		return true;
	if (now < h->look || (!(word & LENT) && waits_for_us(o)))
		return false;
	h->look = word & LENT ? now : now + limit;
	/* A call may as well wait for the monitor. */
	runs = word & LENT ? request_ask(t, REQ_RUNS, (uint64_t)o->tid, 0, 0) : request_runs(t, o);
	return runs <= 0 || (runs == RUNS_DISK && now - h->since >= WAIT_LONG_NS);
}

/*
 * A follower's that has met all that it was told has come to where its twin gave it up or lost it,
 * for that came before this turn.  What it is told next may be a turn of its own; or nothing, where
 * it was killed by an execve before that.
 */
static bool is_left(const struct thread *t, uint64_t word)
{
	const struct thread *o = t->following && word & NAME ? holder_of(word) : NULL;

	return o && order_waits_for_more(o);
}

/*
 * It does what its twin did, which has lost it, or has not: then it is waited for until nothing in
 * the process goes on.
 */
static bool is_lost(struct thread *t, struct holder *h, uint64_t word, uint64_t now, bool lost)
{
	const struct thread *o = holder_of(word);

	if (lost)
		return is_over(t, h, word, now);
	holder_see(h, word, now, cpu_of(o));
	if (!o || cpu_of(o) - h->cpu >= WAIT_LONG_NS)
		return true;
	if (now - h->since < WAIT_LONG_NS)
		return false;
	h->since = now;
	return !order_others_able(t);
}

/* Who has it is to have it no longer. */
static bool is_due(struct thread *t, struct holder *h, uint64_t was, uint64_t now, bool lost)
{
	uint64_t word = was & ~WANTED;

	if (!(word & WORD))
		return false;
	return t->following ? is_lost(t, h, word, now, lost) : is_over(t, h, word, now);
}

/* Until somebody gives it up, or so long. */
static void word_sleep(uint64_t was, uint64_t ns)
{
	struct __kernel_timespec pause = { 0, (long long)ns };
	uint32_t word = (uint32_t)was;

	__atomic_fetch_add(&sleepers, 1, __ATOMIC_RELAXED);
	if (was & WANTED || !word ||
	    __atomic_compare_exchange_n(&baton, &was, was | WANTED, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		OWN4(__NR_futex, &baton, FUTEX_WAIT_PRIVATE, word ? was | WANTED : 0, &pause);
	__atomic_fetch_sub(&sleepers, 1, __ATOMIC_RELAXED);
}

/* Who comes back to it at once would have it before those who sleep for it, time after time. */
static bool is_others_turn(const struct thread *t)
{
	return !t->following && __atomic_load_n(&sleepers, __ATOMIC_RELAXED) &&
	       __atomic_add_fetch(&passed, 1, __ATOMIC_RELAXED) > PASSED_MOST;
}

static bool word_take(uint64_t *was, uint64_t name)
{
	return CONSUME_IF(baton, &baton, was, (*was & ~WORD) + TAKE + name);
}

static void taken(struct thread *t, bool slept)
{
	t->baton = 1;
	if (slept)
		__atomic_store_n(&passed, 0, __ATOMIC_RELAXED);
}

enum hold hold_take(struct thread *t, bool lost)
{
	struct holder h = { 0, 0, 0, 0 };
	uint64_t begun = 0, sleep = PAUSE_FIRST_NS, was;
	enum hold got = HOLD_TAKEN;
	uint64_t name = name_of(t);
	bool met = false;

	if (is_others_turn(t))
		word_sleep(0, sleep);
	for (was = word_now(); was & WORD || !word_take(&was, name); was = word_now()) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		bool left = is_left(t, was);

		begun = begun ? begun : now;
		/* Who sleeps for it is not known any more. */
		name = name_of(t) | WANTED;
		if (stand_look(t)) {
			h.word = 0;
			continue;
		}
		if (!t->following && t->park)
			return HOLD_NOT;
		if (was & LEAVES) {
			if (has_left(now - begun) && word_take(&was, name))
				break;
			continue;
		}
		if (left || is_due(t, &h, was, now, lost)) {
			met = !left && !(was & LENT);
			got = HOLD_AWAY;
			if (word_take(&was, name))
				break;
			got = HOLD_TAKEN;	/* whoever has it by now has just begun */
			continue;
		}
		if (was & WORD)
			word_sleep(was, sleep);
		sleep = pause_longer(sleep);
	}
	taken(t, begun);
	if (begun)
		wait_note(WAIT_baton, clock_ns(CLOCK_MONOTONIC) - begun,
			  got == HOLD_AWAY && met && !lost);
	return got;
}
