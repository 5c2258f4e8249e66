/* Who serves, when the monitor has gone in the middle of a takeover. */
#ifndef MVE_INSIDE_HEIR_H
#define MVE_INSIDE_HEIR_H

#include "engine/inside/gate/thread.h"

/* This version's stream has ended, and another leads, or is to. */
bool heir_is(void);
/*
 * Of a process that stands, where the monitor has gone and the stream has not, or ended: it
 * leads on.  Does not come back where another leads.
 */
bool heir_fails(const struct thread *t);
/* The version leads on, though its stream has ended. */
bool heir_failed(uint32_t version);
/* The descriptors have not come, and will not: the twin leads on.  Does not come back. */
void heir_gives_up(struct thread *t) __attribute__((noreturn));

#endif
