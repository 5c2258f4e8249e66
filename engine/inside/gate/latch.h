/*
 * Latches: the locks of the inside's own.  Each belongs to a module (roles/modules.def),
 * which holds it while its state is between two truths, and calls nothing of the program's
 * meanwhile.  A thread that fails in our code gives those back that it holds (latches_leave):
 * others may find a row half changed, but do not wait for ever.  A fork takes them all in the
 * order of that file, so that its child has none that a thread holds which the child does not
 * have, and no state that is half changed.
 */
#ifndef MVE_INSIDE_LATCH_H
#define MVE_INSIDE_LATCH_H

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/thread.h"

#define LATCH_FREE	0
#define LATCH_HELD	1
#define LATCH_SLEPT_FOR	2	/* held, and who waits for it may sleep */

enum latch {
#define LATCH(name) LATCH_##name,
#include "engine/inside/roles/modules.def"
	LATCHES,
	LATCH_SIGHAND = LATCHES	/* of a struct sighand, which several may have: the last */
};

_Static_assert(LATCH_SIGHAND < 16, "a thread's `latches` has a bit for each");

/* All in one place: a fork copies one page for them. */
extern uint32_t latch_words[LATCHES];

/* It is not free. */
void latch_word_wait(uint32_t *word);
void latch_word_wake(uint32_t *word);
/* False: it was not to be had until then (CLOCK_MONOTONIC). */
bool latch_take_until(enum latch latch, uint64_t end_ns);
/* What this thread holds others wait for, and it will not go on where it holds it. */
void latches_leave(struct thread *t);

static inline bool latch_word_try(uint32_t *word)
{
	uint32_t was = LATCH_FREE;

	return CONSUME_IF(latch, word, &was, LATCH_HELD);
}

static inline void latch_word_take(uint32_t *word)
{
	if (!latch_word_try(word))
		latch_word_wait(word);
}

static inline void latch_word_give(uint32_t *word)
{
	/* The next holder sees what this one has changed. */
	uint32_t was = PUBLISH_BY(latch, exchange_n, word, LATCH_FREE);

	MUST(was != LATCH_FREE);
	if (was == LATCH_SLEPT_FOR)
		latch_word_wake(word);
}

static inline bool latch_is_held(enum latch latch)
{
	return thread_self()->latches >> latch & 1;
}

/* The order in which they are taken is that of modules.def, and of a fork. */
static inline void latch_may_take(enum latch latch)
{
	/* Neither itself nor one behind it: two threads would wait for each other. */
	MUST(!(thread_self()->latches >> latch));
}

static inline void latch_note_taken(enum latch latch)
{
	thread_self()->latches |= (uint16_t)(1u << latch);
}

static inline void latch_note_given(enum latch latch)
{
	MUST(latch_is_held(latch));
	thread_self()->latches &= (uint16_t)~(1u << latch);
}

static inline bool latch_try(enum latch latch)
{
	latch_may_take(latch);
	if (!latch_word_try(&latch_words[latch]))
		return false;
	latch_note_taken(latch);
	return true;
}

static inline void latch_take(enum latch latch)
{
	latch_may_take(latch);
	latch_word_take(&latch_words[latch]);
	latch_note_taken(latch);
}

static inline void latch_give(enum latch latch)
{
	latch_note_given(latch);
	latch_word_give(&latch_words[latch]);
}

static inline void sighand_take(struct sighand *s)
{
	latch_may_take(LATCH_SIGHAND);
	latch_word_take(&s->latch);
	latch_note_taken(LATCH_SIGHAND);
}

static inline void sighand_give(struct sighand *s)
{
	latch_note_given(LATCH_SIGHAND);
	latch_word_give(&s->latch);
}

#endif
