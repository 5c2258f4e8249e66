/*
 * How many bytes a library's function is about to write, where its arguments do not say it
 * (pass/known.def).  Nothing is looked at unless a checkpoint is open.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/state.h"

/* Where a block's size is not known: no more than this, and not over a page's end. */
#define WHOLE_MAX	4096ul

uint64_t mve_known_string(const char *string);
uint64_t mve_known_at(const socklen_t *size);
uint64_t mve_known_whole(const void *at);

/* A string with its end. */
uint64_t mve_known_string(const char *string)
{
	return state->epoch && string ? strlen(string) + 1 : 0;
}

uint64_t mve_known_at(const socklen_t *size)
{
	return state->epoch && size ? *size : 0;
}

/* From a pointer to the end of its block; what is not of our heap may end with its page. */
uint64_t mve_known_whole(const void *at)
{
	uint64_t rest;

	if (!state->epoch || !at)
		return 0;
	rest = heap_rest(at);
	return rest ? rest : WHOLE_MAX - (uintptr_t)at % WHOLE_MAX;
}

#define PAGE		4096ul
#define ASKED_MAX	1024ul	/* pages at once */

/* Up to where there are pages.  Where the kernel does not say there are. */
static size_t mapped(uintptr_t at, size_t size)
{
	size_t all = (size + at % PAGE + PAGE - 1) / PAGE, n = 0, asked = ASKED_MAX;
	unsigned char each[ASKED_MAX];

	while (n < all && asked) {
		long got;

		if (asked > all - n)
			asked = all - n;
		got = KERNEL_3(SYS_mincore, (at & -PAGE) + n * PAGE, asked * PAGE, each);
		if (got && got != -ENOMEM)
			return size;
		if (got)
			asked /= 2;
		else
			n += asked;
	}
	return n < all ? n * PAGE - at % PAGE : size;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A thread's own stacks need nothing.  A buffer of any length is believed; what is longer is a word
 * for `as long as it is': a block's, or, where that is not known, to where no more memory is, or
 * none of the program's. */
SAVES size_t known_most(uintptr_t at, size_t size)
{
	uint64_t rest;

	if (at - own_stack.low < own_stack.room)
		return 0;
	if (is_data(at))
		return least(size, own_next(at) - at);
	if (frames_have(at))
		return least(size, FRAMES_ROOM - at % FRAMES_ROOM);
	if (size <= LOG_KEPT)
		return size;
	rest = heap_rest((const void *)at);
	return least(size, rest ? rest : mapped(at, least(size, HIGH_END)));
}
