/*
 * How many bytes a library's function is about to write, where its arguments do not say it
 * (pass/known.def).  Nothing is looked at unless a checkpoint is open.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include "engine/checkpoint/runtime/heap.h"
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
