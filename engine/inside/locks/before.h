/* Threads that sleep in a function since before it was hooked. */
#ifndef MVE_INSIDE_BEFORE_H
#define MVE_INSIDE_BEFORE_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/runtime/callers.h"

/* The functions have just been hooked, and this thread stands there; `futex`: it sleeps on it. */
void before_note(struct thread *t, struct caller_place at, uint64_t futex);
/* It has yet to come out of a wait that can be ended; one of the process has. */
bool before_sleeps(const struct thread *t);
bool before_any(const struct thread *t);

/* On the program's stack; to begin with all is what the function returned. */
struct late_return {
	uint64_t kind, arg, result, back;
};
/*
 * Fills it in.  The function that is to be called again; or, if there is a kind, the one that has
 * returned, without its hook; or 0.
 */
uint64_t before_over(struct thread *t, struct late_return *r);

#endif
