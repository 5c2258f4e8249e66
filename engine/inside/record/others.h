/*
 * What threads of a leader do for one another: numbers that are closed and given again,
 * registrations, bytes.
 */
#ifndef MVE_INSIDE_OTHERS_H
#define MVE_INSIDE_OTHERS_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

/* Others may meet what the call gives before it is told: it has this number. */
static inline void giving_set(struct thread *t, uint64_t seq)
{
	/* Release: pairs with gives_before; the call is still to be made. */
	__atomic_store_n(&t->writer.lane->giving, (uint32_t)seq | !(uint32_t)seq,
			 __ATOMIC_RELEASE);
}

static inline void giving_end(struct thread *t)
{
	/* Release: pairs with gives_before; the event is published. */
	__atomic_store_n(&t->writer.lane->giving, 0, __ATOMIC_RELEASE);
}

void closing_begin(const struct thread *t, const struct walk *w);
void closing_end(const struct walk *w);
void closing_wait(const struct walk *w);
void polled_by(const struct thread *t);
uint8_t after_others(const struct walk *w, unsigned care);
void giving_begin(struct thread *t, unsigned care, uint64_t seq);

#endif
