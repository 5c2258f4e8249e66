/*
 * Waiting for a latch.  Most are held for less than a look; who waits for longer sleeps, so
 * that a holder with less right to the processor than the waiter can go on.
 */
#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"

#define SPINS		100

uint32_t latch_words[LATCHES];

static uint64_t now_ns(void)
{
	struct __kernel_timespec now = { 0, 0 };

	OWN2(__NR_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static bool word_take_until(uint32_t *word, uint64_t end_ns)
{
	for (int i = 0; i < SPINS; i++) {
		__builtin_ia32_pause();
		if (latch_word_try(word))
			return true;
	}
	while (CONSUME_BY(latch, exchange_n, word, LATCH_SLEPT_FOR) != LATCH_FREE) {
		struct __kernel_timespec look = { 0, PAUSE_LAST_NS };

		if (end_ns && now_ns() > end_ns)
			return false;
		OWN4(__NR_futex, word, FUTEX_WAIT_PRIVATE, LATCH_SLEPT_FOR, &look);
	}
	return true;
}

void latch_word_wait(uint32_t *word)
{
	word_take_until(word, 0);
}

void latch_word_wake(uint32_t *word)
{
	OWN3(__NR_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

bool latch_take_until(enum latch latch, uint64_t end_ns)
{
	if (latch_try(latch))
		return true;
	if (!word_take_until(&latch_words[latch], end_ns))
		return false;
	latch_note_taken(latch);
	return true;
}

void latches_leave(struct thread *t)
{
	uint32_t held = t->latches;

	if (held >> LATCH_SIGHAND & 1)
		sighand_give(t->sig);
	for (uint32_t i = 0; i < LATCHES; i++)
		if (held >> i & 1)
			latch_give((enum latch)i);
}
