/*
 * Between stack.c, which keeps the monitor safe, and unwind.c, which does the
 * work.  Nobody else includes this.
 */
#ifndef MVE_OUTSIDE_STACK_PARTS_H
#define MVE_OUTSIDE_STACK_PARTS_H

#include "engine/outside/report/stack.h"

/* A copy of the stack's upper end. */
struct stack_copy {
	uint64_t at, len;
	uint8_t *bytes;
	char *maps;		/* /proc/PID/maps of a process that is gone by now; else NULL */
	size_t maps_len;
};

/* unwind.c: the frames, as stack_read() gives them. */
json_t *unwind(pid_t pid, const struct stack_start *s, const struct stack_copy *copy);

#endif
