/*
 * Which lock event answers a follower's lock.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/lock_event.h"
#include "engine/inside/locks/lock_gate.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/rules/follow_rules.h"

/*
 * Which lock of the leader's is which of ours is learnt from what is matched.  Memory
 * is used again, and not the same by all versions: where a lock is made what was known of the
 * one before is forgotten.  Not all are made by a call, so a pair that comes up now and then
 * only does not count.
 */
#define PAIRS		4096
#define PAIR_SURE	4
#define PAIR_MOST	64
_Static_assert(!(PAIRS & (PAIRS - 1)) && PAIR_SURE < PAIR_MOST, "a row by a hash's low bits");

static struct pair {
	uint64_t own, leaders;
	uint32_t born;		/* whose lock it is: numbers of versions are used again */
	uint32_t count;
} pairs[PAIRS];

static uint32_t source_born(const struct thread *t)
{
	return streams.conduct->born[t->reader.cursor->source % VERSIONS];
}

/* What is known of the lock; NULL: nothing yet. */
static struct pair *pair_of(const struct thread *t, const struct lock_call *c)
{
	struct pair *p = &pairs[lock_address(c) * 0x9e3779b97f4a7c15ull >> 32 & (PAIRS - 1)];

	return p->own == lock_address(c) && p->born == source_born(t) ? p : NULL;
}

static bool is_pair(const struct thread *t, const struct lock_call *c, const struct event *e)
{
	const struct pair *p = pair_of(t, c);

	return p && p->leaders == e->arg[2];
}

static void pair_learn(const struct thread *t, const struct lock_call *c, const struct event *e)
{
	pairs[lock_address(c) * 0x9e3779b97f4a7c15ull >> 32 & (PAIRS - 1)] =
		(struct pair){ lock_address(c), e->arg[2], source_born(t), 1 };
}

long lock_renewed(struct thread *t, struct lock_call *c)
{
	struct pair *p = pair_of(t, c);

	if (p)
		p->own = 0;
	return 0;
}

bool lock_is_same(const struct thread *t, const struct lock_call *c,
			 const struct event *e)
{
	struct pair *p = pair_of(t, c);

	if (p && p->leaders == e->arg[2]) {
		p->count += p->count < PAIR_MOST;
		return true;
	}
	if (p && p->count >= PAIR_SURE) {
		p->count -= PAIR_SURE;
		return false;
	}
	pair_learn(t, c, e);
	return true;
}

/* The event behind locks that this version does not take, which are passed over; or NULL. */
const struct event *lock_behind_locks(struct thread *t, const struct lock_call *c)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);
	uint32_t n = 0;

	do {
		if (!e || !event_aside(e) || !event_is_plain(e) || n++ == AHEAD_EVENTS)
			return NULL;
		e = reader_next(&ahead);
	} while (!e || !lock_kind_fits(e, c->kind) || !is_pair(t, c, e));
	for (; n; n--) {
		lock_passed(t, reader_peek(&t->reader));
		follow_take(t);
	}
	return reader_peek(&t->reader);
}

/*
 * The event of a lock of the kind, behind queries that this version has yet to
 * make, or never will: they stay (see answer_elastic).
 */
static const struct event *behind_queries(struct wanted *w)
{
	struct thread *t = w->t;
	uint32_t n = 0;

	while (n < AHEAD_EVENTS &&
	       follow_behind(t, n, lock_may_be_over(w->call) ? lock_wait_over : NULL, w)) {
		struct reader ahead = t->reader;
		const struct event *e = reader_peek(&ahead);

		for (uint32_t i = 0; e && i < n; i++)
			e = reader_next(&ahead);
		for (; e && n < AHEAD_EVENTS; n++, e = reader_next(&ahead)) {
			if (t->ahead >> n & 1)
				continue;
			if (lock_kind_fits(e, w->call->kind)) {
				t->lock_at = n;
				return e;
			}
			if (!event_looks(e))
				return reader_peek(&t->reader);
		}
	}
	return reader_peek(&t->reader);
}

/* The front is nothing for a lock to wait behind; it is gone. */
static bool front_drop(struct thread *t, const struct event *e)
{
	if (ahead_full(t, e)) {
		follow_take(t);
		return true;
	}
	return e->kind == EVENT_CALL && rules_given() && rules_drop_front(t);
}

const struct event *lock_event(struct thread *t, struct lock_call *c)
{
	struct wanted w = { t, c, { .kind = WAIT_turn } };
	const struct event *e;

	do
		e = follow_event_or(t, lock_may_be_over(c) ? lock_wait_over : NULL, &w);
	while (e && front_drop(t, e));
	t->lock_at = 0;
	return e && event_looks(e) ? behind_queries(&w) : e;
}

void lock_event_take(struct thread *t, struct lock_call *c, const struct event *e)
{
	/* Behind the front, and not answered before. */
	MUST(t->lock_at < AHEAD_EVENTS && !(t->lock_at && t->ahead >> t->lock_at & 1));
	c->turn = event_turn(e);
	c->tries = c->stood = 0;
	/* A wait that has no limit cannot reach it. */
	c->leaders = c->kind == LOCK_COND_WAIT && e->result == ETIMEDOUT ? 0 : e->result;
	c->error = (int64_t)e->arg[3];
	c->state |= STATE_ASKED;
	if (e->flags & EVENT_SIGNAL_NEXT)
		c->state |= STATE_SIGNAL;
	c->bucket = lock_turn_took(c, c->leaders) ? event_bucket(e) : LOCK_NO_TURN;
	if (c->bucket != LOCK_NO_TURN)
		order_turn_begin(t, e);
	/* Who sees the event taken sees that its turn is not done (order.c). */
	PUBLISH(thread_turning, &t->turning, c->bucket != LOCK_NO_TURN);
	if (t->lock_at)
		t->ahead |= 1ull << t->lock_at;
	else
		follow_take(t);
	t->lock_at = 0;
}

/* The leader's handler ran behind the call: so does ours. */
void lock_signal_next(struct thread *t, const struct lock_call *c)
{
	const struct event *e = c->state & STATE_SIGNAL ? follow_event(t) : NULL;

	if (e && e->kind == EVENT_SIGNAL)
		follow_signal(t, e);
}
