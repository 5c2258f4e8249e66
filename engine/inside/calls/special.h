/* Calls with code of their own: execve, exit, mmap, prctl and others. */
#ifndef MVE_INSIDE_SPECIAL_H
#define MVE_INSIDE_SPECIAL_H

#include "engine/abi/table.h"
#include "engine/inside/gate/thread.h"

/* The inside has code of its own for it. */
static inline bool call_is_special(long nr)
{
	return call_has(call_find(nr), TRAIT_SPECIAL);
}

long serve_special(struct thread *t, long nr);

/*
 * A thread has none at its begin.  It has registered it; others come, and it is taken back; we
 * leave, and it is registered again.
 */
void rseq_none(struct thread *t);
void rseq_note(struct thread *t, uint64_t at, uint64_t len, uint32_t sign);
void rseq_leave(struct thread *t);
void rseq_back(struct thread *t);
/* The process ends here, whatever comes. */
long exit_group_now(struct thread *t);

#endif
