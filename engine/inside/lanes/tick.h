/* A leader's threads stand still while one writes down what a clock said. */
#ifndef MVE_INSIDE_TICK_H
#define MVE_INSIDE_TICK_H

#include <linux/time.h>

#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

#define TICK_DRAWN	1	/* in `ticks`: one's number is being drawn */

extern uint32_t ticks;
extern struct thread *tick_holder;
/* Ticks, when none's number is being drawn. */
uint32_t tick_settled(void);
bool tick_begins(struct thread *t, const struct walk *w, long nr);
uint64_t tick_number(struct thread *t, bool hold);
void tick_told(struct thread *t);
void tick_stand(struct thread *t);
void tick_end(struct thread *t);
/* The thread is about to fork. */
void tick_fork(struct thread *t);
void ticks_lead(struct thread *t);
void ticks_fork(struct thread *t);

/* Behind a number that was drawn they are to be the same, or it may be behind a tick. */
static INLINE uint32_t tick_now(void)
{
	const uint32_t now = CONSUME(ticks, &ticks);

	return __builtin_expect(now & TICK_DRAWN, 0) ? tick_settled() : now;
}

/* What the thread was told by a clock it has written down. */
static inline void tick_over(struct thread *t)
{
	if (t->holds)
		tick_end(t);
}

/* The next event of the thread, which holds nobody, says that a clock has ticked. */
static INLINE bool tick_shows(const struct thread *t, uint32_t now)
{
	return now != t->ticks.shown;
}

/*
 * Since the last event of this thread a clock has ticked in another, or it has not stood as long
 * as it should (tick_stand): its next one's flags.
 */
static inline uint8_t tick_shown(struct thread *t, uint32_t now)
{
	uint32_t since = now - t->ticks.shown;
	uint8_t let;

	tick_over(t);
	if (!since)
		return 0;
	let = t->ticks.let == t->ticks.shown + 1 ? EVENT_LET : 0;
	PUBLISH(ticks_shown, &t->ticks.shown, now);
	return since > 1 ? EVENT_TICK | let : let;
}

/* Which of the clocks that tick the call reads: the monotonic one is 1; -1: none of them. */
static INLINE int tick_clock(const struct walk *w)
{
	const bool says = w->desc->args[0].kind == KIND_ENUM;
	const uint32_t which = says ? (uint32_t)w->args[0] : CLOCK_REALTIME;

	if (which == CLOCK_MONOTONIC || which == CLOCK_MONOTONIC_COARSE)
		return 1;
	return which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE ? 0 : -1;
}

/* Places that read clocks are told apart by where they want them. */
static INLINE uint32_t tick_key(const struct walk *w, long nr)
{
	return (uint32_t)nr << 24 ^ (uint32_t)w->args[0] ^ (uint32_t)w->args[1];
}

/* The first of the ways where it is kept what the place has read. */
static INLINE uint32_t tick_set(uint32_t key)
{
	return (key ^ key >> 4 ^ key >> 8) % TICK_PLACES & ~(TICK_WAYS - 1u);
}

/*
 * The place, and the thread, have read this very second before, and no clock has ticked, or it
 * is one that does not: so it is with nearly all that read one.  Else tick_begins() says what has.
 */
static INLINE bool tick_is_none(const struct thread *t, const struct walk *w, long nr,
				uint32_t second)
{
	const uint32_t key = tick_key(w, nr);
	const struct tick_place *set = &t->ticks.place[tick_set(key)];
	const int clock = tick_clock(w);

	if (t->ticks.goes_on || (clock >= 0 && t->ticks.second[clock] != second))
		return false;
	if (clock < 0)
		return true;
	for (uint32_t i = 0; i < TICK_WAYS; i++)
		if (set[i].key == key && set[i].second == second)
			return true;
	return false;
}

#endif
