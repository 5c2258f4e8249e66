/* Calls with code of their own: execve, exit, mmap, prctl and others. */
#ifndef MVE_INSIDE_SPECIAL_H
#define MVE_INSIDE_SPECIAL_H

#include "engine/abi/table.h"
#include "engine/inside/gate/thread.h"

/* As libc asks for restartable sequences, and takes that back. */
#define RSEQ_SIZE	32
#define RSEQ_SIGN	0x53053053u
#define RSEQ_LEAVE	1	/* RSEQ_FLAG_UNREGISTER */

/* The inside has code of its own for it. */
static inline bool call_is_special(long nr)
{
	return call_has(call_find(nr), TRAIT_SPECIAL);
}

long serve_special(struct thread *t, long nr);

#endif
