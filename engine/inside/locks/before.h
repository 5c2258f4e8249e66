/* Threads that are in a function since before it was hooked. */
#ifndef MVE_INSIDE_BEFORE_H
#define MVE_INSIDE_BEFORE_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/runtime/callers.h"

/* The functions have just been hooked, and all stand: each looks where it is, or is looked for. */
void before_begin(const struct thread *t);
/* This one does.  It stands at a place, and sleeps on `futex`, if it does. */
void before_note(struct thread *t, struct caller_place at, uint64_t futex);
/* It has yet to come out of a wait that can be ended. */
bool before_sleeps(const struct thread *t);
/* There is no twin before it has looked, and is out; before all of the process are. */
bool before_awaited(const struct thread *t);
const struct thread *before_any(const struct thread *t);
/*
 * The program is about to be left, and the thread stands at a place: it comes back from there as if
 * nothing had been hooked, or it is noted for the monitor that it does not (led_tids).
 */
void before_left(struct thread *t, struct caller_place at);

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
