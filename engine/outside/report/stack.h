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
 * The same of a thread whose process ends: what is needed of it is taken now, in a moment, and
 * read when it is gone, by a child of ours.  NULL: there is no memory for it.
 */
struct stack_kept;
struct stack_kept *stack_keep(pid_t pid, const struct stack_start *s);
/* The frames as JSON; "" where that is more than `size`. */
void stack_kept_text(const struct stack_kept *k, char *text, size_t size);
void stack_kept_free(struct stack_kept *k);

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
