/*
 * Between stack.c, which keeps the monitor safe, and unwind.c, which does the
 * work.  Nobody else includes this.
 */
#ifndef MVE_OUTSIDE_STACK_PARTS_H
#define MVE_OUTSIDE_STACK_PARTS_H

#include "engine/outside/kernel/rights.h"
#include "engine/outside/report/stack.h"

/* All that is read of a process, which may be gone by then. */
struct stack_copy {
	pid_t pid;
	struct stack_start start;
	uint64_t at, len;	/* of the stack's upper end */
	uint8_t *bytes;
	char *maps;		/* /proc/PID/maps */
	size_t maps_len;
	struct rights_worn rights;
	int memory;		/* while its thread stands: what else it needs; or -1 */
};

/* unwind.c: the frames, as stack_read() gives them. */
json_t *unwind(const struct stack_copy *copy);

#endif
