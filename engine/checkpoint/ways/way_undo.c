/*
 * The way of an undo log: the bytes before each store, with address and size behind them, however
 * often they are written.  One thread.
 */
#include <errno.h>
#include <string.h>
#include "engine/checkpoint/runtime/save.h"
#include "engine/checkpoint/ways/undo.h"
#include "engine/checkpoint/ways/ways.h"

SAVES void mve_checkpoint_log(const void *at, size_t size)
{
	if (state->epoch && size && (uintptr_t)at - state->stack_low >= state->stack_room &&
	    undo_room(size))
		__builtin_memcpy(undo_put((uintptr_t)at, size), at, size);
}

int undo_begin(void)
{
	state->undo = 1;
	return 0;
}

int undo_open(struct level *level)
{
	(void)level;
	return 0;
}

void undo_restore(const struct level *level)
{
	while (state->head > level->mark) {
		struct last *last = (struct last *)(LOG_AT + state->head) - 1;
		size_t room = (last->size + 7) & -8ul;

		state->head -= room + sizeof(*last);
		memcpy((void *)last->at, (char *)LOG_AT + state->head, last->size);
	}
}
