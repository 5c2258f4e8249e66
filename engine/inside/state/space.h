/* A program's limits of memory, which mve's own does not count against. */
#ifndef MVE_INSIDE_SPACE_H
#define MVE_INSIDE_SPACE_H

#include "engine/inside/gate/thread.h"

/* setrlimit, getrlimit, prlimit64. */
long serve_limit(struct thread *t, long nr);
/* So much is about to be mapped for streams, or (negative) is no more. */
void space_grow(int64_t bytes);
/* Which limits are wider than the program believes: over execve, and for a vfork's child. */
uint32_t space_bits(const struct thread *t);
void space_begin(void);
/* mve leaves the process: they are what the program believes. */
void space_end(void);

#endif
