/*
 * What goes by the events' numbers, and what threads are at work on: a clock that has ticked, a
 * fork.  What was before it is done before it.
 */
#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/signal.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/order_tick.h"
#include "engine/inside/replay/follow.h"

bool order_is_at_work(const struct thread *o, uint64_t seq)
{
	/* What it did before is done. */
	return !CONSUME(thread_waits, &o->waits) && !CONSUME(thread_stands, &o->stands) &&
	       !order_is_behind(seq, CONSUME(thread_past, &o->past));
}

/* Threads that still work on what they took: the copy would hold half of it. */
const struct thread *order_others_busy(const struct thread *t, uint64_t seq)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->following && o->has_lane &&
		    order_is_at_work(o, seq))
			return o;
	return NULL;
}

/* It has yet to read the clock: such events are not in others' way else (next_of). */
static bool tick_to_come(const struct thread *o, uint64_t seq)
{
	struct reader r;
	const struct event *e;
	uint64_t done;

	if (!reader_attach_other(&r, &streams, o->lane))
		return true;	/* it moves: look again */
	done = __atomic_load_n(&o->ahead, __ATOMIC_RELAXED);
	if (r.pos != CONSUME_AGAIN(cursor_at, &r.cursor->at))
		return true;	/* what it has answered is of another place */
	e = reader_look(&r);
	for (uint32_t i = 0; e && i < AHEAD_EVENTS && order_is_behind(e->seq, seq); i++) {
		if (e->flags & EVENT_CLOCK && !(done >> i & 1))
			return true;
		e = reader_next(&r);
	}
	return false;
}

static const struct thread *others_to_tick(const struct thread *t, uint64_t seq)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->following && o->has_lane &&
		    o->reader.cursor->source == t->reader.cursor->source && tick_to_come(o, seq))
			return o;
	return NULL;
}

static const struct thread *others_at_work(const struct thread *t, uint64_t seq)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->following && o->has_lane &&
		    order_is_at_work(o, seq) && !order_works_since(o, t))
			return o;
	return NULL;
}

static const struct thread *others_tick(const struct thread *t, uint64_t seq)
{
	const struct thread *o;

	(void)seq;
	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && CONSUME(thread_ticking, &o->ticking))
			return o;
	return NULL;
}

static void others_wait(struct thread *t, uint64_t seq, order_test *last)
{
	if (order_wait_for_awake(t, seq, order_is_thread_behind, order_awake_behind,
				 WAIT_second) &&
	    order_wait_while(t, seq, others_to_tick, WAIT_second))
		order_wait_while(t, seq, last, WAIT_busy);
}

/*
 * A clock's second is over, and a plain variable may say so from here on (lead.c).  The
 * thread that reads the clock waits until the others have done all that was before; they
 * wait until it has come to its next event, and so has written down what it read.
 */
void order_tick(struct thread *t, const struct event *e)
{
	uint64_t at = t->reader.pos + 1;
	bool clock = e->flags & EVENT_CLOCK;

	MUST(t->following);

	if (t->tick_at == at || wait_given_up(WAIT_second))
		return;
	t->tick_at = at;
	/* It goes on, and the others stand; but where its leader's was held by one meanwhile. */
	if (clock && t->ticking && !others_to_tick(t, e->seq))
		return;
	order_tick_over(t);
	others_wait(t, e->seq, clock ? others_at_work : others_tick);
	t->ticking = clock;
}

/*
 * A lock's turn was drawn before its number, and what another thread does may wait for the turn.
 * So what goes by numbers is waited for behind it: until then the thread is past that.
 */
void order_turn_begin(struct thread *t, const struct event *e)
{
	t->past_ticks = e->flags & EVENT_TICK && !again_passes(t, e);
	if (t->past_ticks || order_is_before_fork(e->seq))
		PUBLISH(thread_past, &t->past, e->seq);
}

void order_turn_done(struct thread *t)
{
	uint64_t seq = t->past;

	if (!seq)
		return;
	if (t->following)
		order_wait_fork(t, seq);
	if (t->following && t->past_ticks && !wait_given_up(WAIT_second))
		others_wait(t, seq, others_tick);
	PUBLISH(thread_past, &t->past, 0);
}

static const struct thread *others_second(const struct thread *t, uint64_t seq)
{
	const struct thread *o = others_to_tick(t, seq);

	return o ? o : others_tick(t, seq);
}

void order_tick_first(struct thread *t)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);

	while (e && e->kind == EVENT_EDGE)
		e = reader_next(&ahead);
	if (e && e->flags & EVENT_TICK && e->flags & EVENT_LET && !t->ticking)
		order_wait_while(t, e->seq, others_second, WAIT_again);
}

void order_tick_over(struct thread *t)
{
	if (!t->ticking)
		return;
	/* What it did is done. */
	PUBLISH(thread_ticking, &t->ticking, 0);
	order_step(t);
}
