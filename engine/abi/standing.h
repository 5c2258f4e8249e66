/*
 * Which descriptors a process has, and which of them an execve closes, written by its last
 * thread that comes to stand before another version takes over.  It lies in the process's
 * own memory, at the symbol `standing_fds` of its inside image; the monitor reads it and
 * need not ask the kernel for each descriptor, which costs some microseconds.
 */
#ifndef MVE_ABI_STANDING_H
#define MVE_ABI_STANDING_H

#include <stdint.h>

#define STANDING_FDS	65536	/* whoever has more is asked of the kernel */
#define STANDING_VALID	0x53544644
#define STANDING_TOLD	2	/* words: of few a thread that crashes tells at once */

struct standing_fds {
	uint32_t valid;		/* STANDING_VALID: all threads stand, and this is how it is */
	uint32_t looked;	/* at so many numbers, from 0 on */
	/* Those behind are as they were: few are read where there are few. */
	struct standing_word {
		uint64_t open, cloexec;
	} word[STANDING_FDS / 64];
};

#endif
