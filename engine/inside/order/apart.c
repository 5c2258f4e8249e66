/*
 * Connections that a follower may serve in another order (@apart): each has a sequence
 * of calls of its own, and all other calls have one together.  A call on a connection
 * meets the leader's next call on that connection, wherever among the leader's next
 * events that stands; what was met before its turn stays in its place with a bit
 * (`ahead`, and `far` behind its end, in a circle), and goes when the stream's front
 * comes there.  How far the two may be apart is how many bits there are, and half of
 * the ring, since the leader must have room to come there.
 *
 * What holds the sequences together is epoll: the follower is told what the leader's
 * next wait has brought when it has done all that the leader did before.  Until then a
 * wait that only looks (time 0) brings nothing, and one that would sleep brings what is
 * still to be done.  And what a wait has brought cannot be read before it.
 *
 * A version that follows so does not lead (takeover.c): what it is about to do on each
 * connection is nothing that the leader ever was between.
 *
 * Private to a thread.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/eventpoll.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/apart.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/rules/follow_rules.h"

static unsigned far_place(const struct rules_thread *rt, unsigned i)
{
	return (rt->far_first + i) % FAR_EVENTS;
}

bool apart_is_taken(const struct thread *t, unsigned i)
{
	const struct rules_thread *rt = t->rules;

	if (i < AHEAD_EVENTS)
		return t->ahead >> i & 1;
	i -= AHEAD_EVENTS;
	if (!rt || i >= FAR_EVENTS)
		return false;
	i = far_place(rt, i);
	return rt->far[i / 64] >> i % 64 & 1;
}

void apart_mark(struct thread *t, unsigned i)
{
	struct rules_thread *rt = t->rules;

	if (i < AHEAD_EVENTS) {
		t->ahead |= 1ull << i;
		return;
	}
	i = far_place(rt, i - AHEAD_EVENTS);
	/* Marked once, or the count of them would not come down to none. */
	MUST(!(rt->far[i / 64] >> i % 64 & 1) && rt->fars < FAR_EVENTS);
	rt->far[i / 64] |= 1ull << i % 64;
	rt->fars++;
}

/* The front has been taken. */
void apart_shift(struct thread *t)
{
	struct rules_thread *rt = t->rules;
	unsigned first;

	t->ahead >>= 1;
	if (!rt || !rt->fars)
		return;
	first = rt->far_first;
	MUST(first < FAR_EVENTS);
	rt->far_first = far_place(rt, 1);
	if (!(rt->far[first / 64] >> first % 64 & 1))
		return;
	rt->far[first / 64] &= ~(1ull << first % 64);
	rt->fars--;
	t->ahead |= 1ull << (AHEAD_EVENTS - 1);
}

void apart_forget(struct thread *t)
{
	struct rules_thread *rt = t->rules;

	t->ahead = 0;
	if (!rt)
		return;
	bytes_zero(rt->far, sizeof(rt->far));
	rt->fars = 0;
	rt->apart = 0;
	rt->lens = APART_ALL;
}

/* The looked-at event is the front again. */
void apart_restore(struct thread *t)
{
	struct rules_thread *rt = t->rules;

	if (!rt)
		return;
	rt->lens = APART_ALL;
	if (!rt->apart)
		return;
	rt->apart = 0;
	t->reader = rt->apart_front;
}

/* The front, and what was met behind it. */
void apart_settle(struct thread *t)
{
	while (t->ahead & 1 && reader_peek(&t->reader)) {
		reader_take(&t->reader);
		apart_shift(t);
	}
}

bool apart_is_behind(const struct thread *t)
{
	return t->rules && t->rules->apart;
}

uint8_t apart_take(struct thread *t)
{
	struct rules_thread *rt = t->rules;
	uint8_t flags = reader_flags(&t->reader);
	unsigned i = rt->apart;

	MUST(i && i < APART_EVENTS);

	apart_restore(t);
	apart_mark(t, i);
	return flags;
}

uint8_t apart_drop(struct thread *t, unsigned n)
{
	struct rules_thread *rt = t->rules;
	uint8_t flags = rt->held[n - 1].event->flags;

	MUST(n && n <= rt->helds);
	apart_restore(t);
	for (unsigned i = 0; i < n; i++)
		apart_mark(t, rt->held[i].ahead);
	apart_settle(t);
	rt->helds = 0;
	return flags;
}
