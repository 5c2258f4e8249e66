/* Which way a call takes: the short one, or the long one. */
#ifndef MVE_INSIDE_WAYS_H
#define MVE_INSIDE_WAYS_H

#include "engine/abi/table.h"
#include "engine/inside/gate/thread.h"

/* The inside has code of its own for it. */
static inline bool call_is_special(long nr)
{
	return call_has(call_find(nr), TRAIT_SPECIAL);
}

void ways_fill(void);
/* A call that is made in place, or is about to be, is at this address. */
bool in_short_call(uint64_t rip);
void ways_follow(struct thread *t);

#endif
