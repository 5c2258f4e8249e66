/*
 * What has differed is met again, each time in another way (docs/design/rewind.md).  Threads that
 * agree by plain memory did so in the order in which the leader's ran, and of that the numbers of
 * its events tell most: a follower's threads run by edges and locks alone, each as soon as it
 * can, and one that sleeps until it looks again is a while behind.  So they take their events in
 * the order of the numbers first; then each when the others have done what they took before,
 * too.  So what a thread did between two events it does as early as it can have been done; then it
 * does that as late: when the others have done all that comes before its next event.  Then some
 * are put off, for what differs so as well.  Where one works at a time there is nothing of that to
 * be found.
 *
 * What a thread found of a clock's second that another wrote down meanwhile no number tells, where
 * one of the two had no processor just then, and was not waited for (EVENT_LET).  It finds the one
 * or the other by the try's number.
 *
 * By which way a race was healed is kept, for as far as that came (struct healed): what differs
 * behind it has its own ways, and races that are many need no chance to be healed all at once.
 */
#include <asm/unistd.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/order_tick.h"
#include "engine/inside/order/turns.h"

enum again { AGAIN_PUT_OFF, AGAIN_NUMBERS, AGAIN_STEPS, AGAIN_LATE, AGAIN_WAYS };

#define PUT_OFF		16	/* one event in so many is, */
#define PUT_OFF_MOST	2	/* by at most so many first pauses */
#define CHOICES		3	/* threads of which each may have found either second: 8 tries */

/* Each time it is met another way. */
static uint64_t dice_of(uint32_t who, uint64_t seq, uint32_t tries)
{
	return ((uint64_t)who << 32 ^ seq ^ tries) * 0x9e3779b97f4a7c15ull;
}

static void put_off(const struct thread *t, uint64_t seq, uint32_t tries)
{
	uint64_t dice = dice_of((uint32_t)t->tid, seq, tries);
	struct __kernel_timespec sleep = {
		0, (long long)(dice >> 32) % (PUT_OFF_MOST * PAUSE_FIRST_NS)
	};

	if (dice >> 60 == tries % PUT_OFF)
		OWN4(__NR_clock_nanosleep, CLOCK_MONOTONIC, 0, &sleep, 0);
}

/*
 * One at a time the turns tell all of it, but where one lost the baton, which its event says (not
 * that of who took it from there).
 */
static bool is_told_by_turns(const struct event *e)
{
	return in_turns() && !(e->flags & EVENT_SIGNAL_NEXT);
}

static const struct thread *able_behind(const struct thread *t, uint64_t seq);

/* Two that ask for each other so would ask for ever: what it found itself last is taken. */
static bool says_it_stands(const struct thread *o)
{
	order_test *what = CONSUME(thread_stands, &o->stands);

	if (!what)
		return lock_stands(o);
	return what == able_behind ? __atomic_load_n(&o->stands_for, __ATOMIC_RELAXED)
				   : what(o, o->stands_seq);
}

/* Another is behind, and goes on by itself. */
static const struct thread *able_behind(const struct thread *t, uint64_t seq)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (order_is_behind_of(o, t, seq) && order_is_awake(o) && !says_it_stands(o))
			return o;
	return NULL;
}

/* Another works on what it took, and stands for nobody. */
static const struct thread *others_able_busy(const struct thread *t, uint64_t seq)
{
	const struct thread *o;

	(void)seq;
	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->following && o->has_lane &&
		    /* What it did before is done. */
		    !CONSUME(thread_waits, &o->waits) && !says_it_stands(o))
			return o;
	return NULL;
}

/* Which try the event is met as: the one by which what is there was healed, or this one. */
static uint32_t try_at(const struct thread *t, uint64_t seq)
{
	const struct images *w = images();

	for (uint32_t i = 0; i < w->heals && i < HEALED_MAX; i++)
		if (w->healed[i].vpid == t->vpid && !order_is_behind(w->healed[i].until, seq))
			return w->healed[i].try;
	return image_tries();
}

void again_met(struct thread *t, const struct event *e)
{
	/* A lock's turn was drawn before its number: who stands may stand for that. */
	order_test *behind = event_has_turn(e) ? able_behind : order_awake_behind;
	uint64_t seq = e->seq;
	uint32_t try = try_at(t, seq);

	if (is_told_by_turns(e))
		return;
	if (try % AGAIN_WAYS == AGAIN_PUT_OFF)
		put_off(t, seq, try);
	else if (!t->ticking && order_wait_while(t, seq, behind, WAIT_again) &&
		 try % AGAIN_WAYS == AGAIN_STEPS &&
		 !in_turns() && !wait_met_often(WAIT_apart))	/* none is at work; some are ever */
		order_wait_while(t, seq, others_able_busy, WAIT_apart);
}

/*
 * Of two seconds the thread finds the other one than it would in the first try: that hangs on a
 * bit of the try, and of threads beside each other on another bit each.
 */
static bool finds_other(const struct thread *t, uint32_t try)
{
	return try >> t->lane % CHOICES & 1;
}

bool again_passed(const struct thread *t, const struct event *e)
{
	struct reader ahead = t->reader;
	const struct event *next = reader_peek(&ahead) ? reader_next(&ahead) : NULL;

	return next && next->kind != EVENT_SIGNAL &&
	       (next->flags & (EVENT_LET | EVENT_TICK)) == EVENT_LET &&
	       finds_other(t, try_at(t, e->seq));
}

/*
 * What comes before its next event is done first.  Locks have no number of their own: every other
 * time those of the same one are, too.
 */
void again_left(struct thread *t)
{
	struct reader ahead = t->reader;
	const struct event *e = t->following ? reader_peek(&ahead) : NULL;
	uint32_t try;

	if (!e)
		return;
	try = try_at(t, e->seq);
	if (finds_other(t, try))
		order_tick_first(t);
	if (try % AGAIN_WAYS == AGAIN_LATE && !t->ticking && !is_told_by_turns(e))
		order_wait_while(t, e->seq + try / AGAIN_WAYS % 2, able_behind, WAIT_again);
}
