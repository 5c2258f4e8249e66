/*
 * The undo log's records, for comparison: bytes, and behind them where they were.  The runtime's
 * heap is built for tags; log.c puts its regions here where this is the way.
 */
#ifndef MVE_CHECKPOINT_UNDO_H
#define MVE_CHECKPOINT_UNDO_H

#include <errno.h>
#include "engine/checkpoint/runtime/state.h"

struct last {
	uintptr_t at;
	size_t size;
};

static inline size_t undo_padded(size_t size)
{
	return (size + 7) & -8ul;
}

static inline int undo_room(size_t size)
{
	if (state->head + undo_padded(size) + sizeof(struct last) <= LOG_MAX)
		return 1;
	lost(ENOSPC, "more was written than the log can hold");
	return 0;
}

/* A record's place: the bytes are to be copied there. */
static inline char *undo_put(uintptr_t at, size_t size)
{
	char *bytes = (char *)LOG_AT + state->head;
	struct last *last = (struct last *)(bytes + undo_padded(size));

	last->at = at;
	last->size = size;
	state->head += undo_padded(size) + sizeof(*last);
	return bytes;
}

#endif
