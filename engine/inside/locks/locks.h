/* The order in which locks are taken: a hooked call, and what is done at one. */
#ifndef MVE_INSIDE_LOCKS_H
#define MVE_INSIDE_LOCKS_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/lock_gate.h"
#include "engine/inside/order/turns.h"

/* One that the gate passes on; no program can make it. */
static inline bool lock_asked(const struct thread *t)
{
	return t->frame.rax >= LOCK_CALLS && !t->frame.site_end;
}

long lock_serve(struct thread *t);
/*
 * Whether a leader's thread with this stack is within a wait for a condition: its
 * address, or 0.
 */
uint64_t lock_wait_within(uint64_t rsp);
/* A leader's thread is in a hooked function, whose event is still to be told. */
bool lock_is_led(uint64_t rsp);
/* The same on the lock gate's short way, which waits for nothing. */
long lock_took(struct thread *t, struct lock_call *c);
/* A leader's function has returned 0: NULL where that is told, else what is still to be called. */
typedef long lock_rest(struct thread *t, struct lock_call *c);
lock_rest *lock_told(struct lock_call *c);
long lock_ask_now(struct thread *t, struct lock_call *c);

#endif
