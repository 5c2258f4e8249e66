/* Where every call passes: what C code asks of gate.S. */
#ifndef MVE_INSIDE_GATE_H
#define MVE_INSIDE_GATE_H

#include "engine/inside/gate/thread.h"

long own_call(long nr, long a, long b, long c, long d, long e, long f);
long call_kernel_patch(struct frame *f);
long call_kernel_net(struct frame *f);
/* The same, of a thread that waits for what it asked: its request is the last argument. */
long request_sleep(long nr, long a, long b, long c, long d, long e, const struct request *r);
long clone_kernel(struct frame *f, struct thread *child);
_Noreturn void sigreturn_exit(void);
_Noreturn void thread_exit(uint64_t *bitmap, uint64_t bit, long status);

/* For call_aside() alone: own.S. */
long own_aside(void (*work)(void *what), void *what);
/*
 * What opens files where the program's threads must not meet their numbers: each is given the
 * lowest that is free, and may close what it did not open.  `work` is done by a thread of its own
 * that has no descriptors, and takes no signal; it must not wait.  False: it was not.
 */
bool call_aside(void (*work)(void *what), void *what);

#define OWN0(nr)		own_call(nr, 0, 0, 0, 0, 0, 0)
#define OWN1(nr, a)		own_call(nr, (long)(a), 0, 0, 0, 0, 0)
#define OWN2(nr, a, b)		own_call(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define OWN3(nr, a, b, c)	own_call(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define OWN4(nr, a, b, c, d) \
	own_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define OWN6(nr, a, b, c, d, e, f) \
	own_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* With what is left of its time; or a call that time does not end: see lanes/rest.c. */
long call_kernel_timed(struct thread *t);

static inline long call_gate(struct thread *t)
{
	return t->tier == TIER_PATCH ? call_kernel_patch(&t->frame)
					   : call_kernel_net(&t->frame);
}

static inline long call_kernel(struct thread *t)
{
	return __builtin_expect(t->began != 0, 0) ? call_kernel_timed(t) : call_gate(t);
}

#define EVERYBODY	0x7fffffff	/* who sleeps on a futex */

#endif
