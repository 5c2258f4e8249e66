/* A lock, and waiting, by a word of memory: nothing of libc's stands behind it. */
#ifndef MVE_UPDATE_WORD_H
#define MVE_UPDATE_WORD_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/pairs.h"

#define WORD_OURS	FUTEX_WAIT_PRIVATE
#define WORD_SHARED	FUTEX_WAIT	/* another process changes it */

/* While it has this value; false: so many ms are over (0: without a limit). */
static inline bool word_wait(uint32_t *word, uint32_t value, int op, unsigned ms)
{
	struct timespec most = { ms / 1000, ms % 1000 * 1000000l };

	return syscall(SYS_futex, word, op, value, ms ? &most : NULL, NULL, 0) == 0 ||
	       errno != ETIMEDOUT;
}

static inline void word_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* 0: free; 1: taken; 2: somebody waits. */
static inline void word_lock(uint32_t *word)
{
	uint32_t was = 0;

	if (BOTH_IF(update_lock, word, &was, 1))
		return;
	while (BOTH_BY(update_lock, exchange_n, word, 2))
		word_wait(word, 2, WORD_OURS, 0);
}

static inline void word_unlock(uint32_t *word)
{
	if (BOTH_BY(update_lock, exchange_n, word, 0) == 2)
		word_wake(word);
}

#endif
