/*
 * Twins have the same addresses.  Programs say where things are without knowing:
 * mkstemp makes names of an address on the stack, libcrypto stirs thread ids into
 * its random numbers, a log names pthread_self().  The leader keeps the kernel's
 * random layout; a follower's fresh program is laid out like its leader's.
 */
#ifndef MVE_OUTSIDE_LAYOUT_H
#define MVE_OUTSIDE_LAYOUT_H

#include <stdbool.h>

#include "engine/outside/maps.h"
#include "engine/outside/remote.h"

/* Of a fresh program, before anything of ours is in it. */
struct layout {
	bool known;
	dev_t dev;		/* of the program's file */
	ino_t inode;
	uint64_t program, len;	/* its own mappings */
	uint64_t brk;
	uint64_t top;		/* under it the kernel places what has no address */
	uint64_t stack_end, sp;
};

/* How far the parts of a program were moved. */
struct layout_moves {
	uint64_t program, stack, block;
	uint64_t brk;		/* where it is to begin; 0: where it does */
};

/* What the tracee has, as it stands at remote_begin(). */
void layout_read(const struct remote *r, const struct maps *m, struct layout *out);

/*
 * In a process that is about to execute a program: the kernel shall begin its
 * mappings where those of `like` begin.  layout_settle() undoes it.
 */
void layout_ask(const struct layout *like);

/*
 * Moves what is still elsewhere, and changes r->regs accordingly.  What cannot be
 * moved stays: nothing depends on it but programs that tell addresses.
 */
void layout_settle(struct remote *r, const struct maps *m, const struct layout *like,
		   struct layout_moves *moved);

#endif
