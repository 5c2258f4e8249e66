/*
 * The stack of a thread that stands still, with symbols: unwound from any place
 * by the call frame information of the files that it runs, without ptrace.
 */
#ifndef MVE_OUTSIDE_STACK_H
#define MVE_OUTSIDE_STACK_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "engine/abi/area.h"

struct stack_start {
	uint64_t place;		/* 0: the return address stands at `stack` */
	uint64_t stack;
	uint64_t saved[SAVED];
	bool exact;		/* the place is where it stands, not where it returns to */
};

/*
 * An array of frames, innermost first; never NULL.  Each has "pc", "module" and
 * "address" (the place in the module's file, as addr2line wants it), and where that
 * is known "function", "file" and "line"; "inlined" is true for one that its caller
 * holds.  Takes a few seconds at most.
 */
json_t *stack_read(pid_t pid, const struct stack_start *s);

/*
 * The same beside the loop.  What is needed of the thread is taken now, in a moment: it may go
 * on then, and its process end.  `told` hears of the frames later, once; or at once, and of
 * none, where nothing can be begun.
 */
void stack_read_beside(pid_t pid, const struct stack_start *s,
		       void (*told)(void *of, json_t *frames), void *of);

/*
 * Where a thread is that nobody has stopped: stops it for a moment.  False when it
 * cannot be stopped.  A thread in mve's own code is at its last call (*s is left).
 */
bool stack_catch(pid_t tid, uint64_t inside, uint64_t inside_len, struct stack_start *s);

/*
 * The innermost frame that is not of libc and its like, better one with a line or
 * at least a name; NULL when there is none.
 */
const json_t *stack_frame_own(const json_t *stack);

#endif
