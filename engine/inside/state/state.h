/* What a call has changed of what the kernel keeps: state.def says who notes it. */
#ifndef MVE_INSIDE_STATE_H
#define MVE_INSIDE_STATE_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/state/timers.h"

static inline void nothing_noted(struct thread *t, long nr, const uint64_t *args)
{
	(void)t, (void)nr, (void)args;
}

/* A call with the trait KEPT has been made, or answered. */
static inline void state_note(struct thread *t, long nr, const uint64_t *args, int64_t result)
{
	if (result < 0)
		return;
#define MADE(name, note, ...) note(t, nr, args);
#define EACH(name, note, ...) note(t, nr, args);
#define LATE(name, note, ...) note(t, nr, args);
#include "engine/abi/state.def"
}

#endif
