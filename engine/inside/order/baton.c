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
 * The baton itself, a lock of the process' own with a limit, is order/hold.c.  A call that may wait
 * though its row does not say so is made with it, but lent: where another takes it meanwhile the
 * call's event says so, and a turn comes behind it.  What two do of whom one has lost it outside of
 * such a call is ordered no more than without it; the next call that waits ends that.
 */
#include <asm/unistd.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/table.h"
#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/signal/ucontext.h"

#define CALLS_MOST	16	/* that are told, while others want it */

bool baton_is_asked(void)
{
	return streams.conduct && streams.conduct->one_at_a_time;
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
	hold_begin(t);
}

void baton_alone(struct thread *t, bool copied)
{
	if (copied && t->takes_turns) {
		hold_alone();
		/* What was drawn is its parent's, which may have come further in one version. */
		lock_buckets[LOCK_BATON_BUCKET] = (struct bucket){ 0 };
	}
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

bool baton_wakes(const struct call_desc *d)
{
	return d && d->class == CLASS_LOCAL && call_has(d, TRAIT_SIGNALS);
}

static void turn_tell(struct thread *t, uint64_t turn, bool lost, long result)
{
	struct event *e;

	if (!stream_followed(t) || t->kept)
		return;
	e = event_begin(t, EVENT_BATON, 0, result);
	e->arg[0] = LOCK_BATON_BUCKET;
	e->arg[1] = turn;
	e->arg[2] = lost;
	e->arg[3] = e->arg[4] = 0;
	event_end(t);
}

/* Where it is asked to stand still it takes it behind that, in the role that it has then. */
static void lead_take(struct thread *t, long result)
{
	enum hold got = hold_take(t, false);

	t->baton_due = got == HOLD_NOT;
	if (got != HOLD_NOT)
		turn_tell(t, turn_draw(LOCK_BATON_BUCKET), got == HOLD_AWAY, result);
}

void baton_tell(struct thread *t, long result)
{
	if (baton_applies(t) && result != CALL_RESTART)
		turn_tell(t, 0, false, result);
}

bool baton_meet(struct thread *t, const struct event *e)
{
	uint64_t turn = event_turn(e);
	bool signal = e->flags & EVENT_SIGNAL_NEXT, lost = e->arg[2];

	MUST(t->following);
	if (event_is_turn(e)) {
		hold_give(t);
		turn_wait(t, LOCK_BATON_BUCKET, turn, 0);
		hold_take(t, lost);
		turn_done(LOCK_BATON_BUCKET, turn);
	}
	follow_take(t);
	e = signal ? follow_event(t) : NULL;
	if (!e || e->kind != EVENT_SIGNAL)
		return false;
	follow_signal(t, e);
	return true;
}

/*
 * It has made many calls since it took the baton, and others want that: they are next.  One that
 * spins for what another is to do often reads a clock meanwhile (Go's sweeper), which makes no
 * call of the kernel's: those count, too.  In a follower the turn stands in front of the call's
 * event.
 */
void baton_yield(struct thread *t)
{
	struct __kernel_timespec pause = { 0, PAUSE_FIRST_NS };

	if (!t->baton || t->following || t->baton++ < CALLS_MOST)
		return;
	t->baton = 1;
	if (!hold_is_wanted())
		return;
	hold_give(t);
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

bool baton_missed(struct thread *t, const struct call_desc *d)
{
	return baton_applies(t) && !hold_back(t) && !baton_lets_go(d);
}

void baton_resume(struct thread *t)
{
	if (!t->baton_due)
		return;
	t->baton_due = 0;
	baton_take(t, 0);
}

/*
 * A call that is to be made again gives it up again; but a handler that comes before that is at
 * work.
 */
static bool is_made_again(const struct thread *t, long result)
{
	return result == CALL_RESTART && !(t->pending && info_int(t->held_info, INFO_SIGNO));
}

long baton_take(struct thread *t, long result)
{
	if (!baton_applies(t))
		return result;
	if (!t->following) {
		if (!hold_back(t) && !is_made_again(t, result))
			lead_take(t, result);
	} else if (!t->baton && result != CALL_RESTART && !t->announced) {
		follow_baton(t, result);
	}
	return result;
}
