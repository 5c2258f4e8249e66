/*
 * Where the parts of a fresh program lie.  The monitor reads it of each program of
 * a leader; the program tells it in its EVENT_EXEC; the follower's thread asks the
 * kernel for the same before its own execve, and hands it to the monitor, which
 * moves the rest (outside/start/layout.c).
 */
#ifndef MVE_ABI_LAYOUT_H
#define MVE_ABI_LAYOUT_H

#include <stdint.h>

struct layout {
	uint64_t dev, inode;	/* of the program's file */
	uint64_t program, len;	/* its own mappings */
	uint64_t brk;
	uint64_t top;		/* under it the kernel places what has no address; 0: all
				   of this is unknown */
	uint64_t stack_end, sp;
};

#define STACK_TOP	0x7ffffffff000ull	/* of an address space of 47 bits */
#define STACK_GUARD	0x100000ull	/* the kernel adds it to the stack's limit */
#define GAP_MIN		0x8000000ull	/* it leaves so much for a stack at least */

/*
 * The limit of the stack under which the kernel begins the mappings of a program that
 * is not randomized under `top`; 0: there is none, `now` being the process' own.
 * (Without a limit the kernel begins at the other end.)
 */
static inline uint64_t layout_stack_limit(const struct layout *like, uint64_t now)
{
	if (!like->top || like->top > STACK_TOP - GAP_MIN - STACK_GUARD || now == ~0ull)
		return 0;
	return STACK_TOP - like->top - STACK_GUARD;
}

_Static_assert(sizeof(struct layout) == 64, "as struct request has room for");

#endif
