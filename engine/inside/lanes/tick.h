/* A leader's threads stand still while one writes down what a clock said. */
#ifndef MVE_INSIDE_TICK_H
#define MVE_INSIDE_TICK_H

#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

extern uint32_t ticks;
extern struct thread *tick_holder;
bool tick_begins(struct thread *t, const struct walk *w, long nr);
uint64_t tick_number(struct thread *t, bool hold);
void tick_told(struct thread *t);
void tick_stand(const struct thread *t);
void tick_end(struct thread *t);
void ticks_lead(struct thread *t);
void ticks_fork(struct thread *t);

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

/* Since the last event of this thread a clock has ticked in another: its next one's flag. */
static inline uint8_t tick_shown(struct thread *t, uint32_t now)
{
	tick_over(t);
	if (now == t->ticks.shown)
		return 0;
	PUBLISH(ticks_shown, &t->ticks.shown, now);
	return EVENT_TICK;
}

#endif
