/* What a process that stands tells of its descriptors. */
#ifndef MVE_INSIDE_STANDING_H
#define MVE_INSIDE_STANDING_H

#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"

/* The monitor wants this version to stand. */
bool standing_wanted(void);
/* Or that of a process that is alone, so that it may have followers. */
static inline bool company_wanted(void)
{
	return __builtin_expect(__atomic_load_n(&brief()->company, __ATOMIC_RELAXED), 0);
}
/* What it will write then is there: clients may wait. */
void standing_ready(void);
/* The thread comes to stand, and goes on. */
void standing_begin(struct thread *t);
/* What it has of them then, in 2 * STANDING_TOLD words; 0: that is not all, or not known. */
void standing_tell(uint64_t *words);
void standing_end(struct thread *t);

#endif
