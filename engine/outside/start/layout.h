/*
 * Twins have the same addresses.  Programs say where things are without knowing:
 * mkstemp makes names of an address on the stack, libcrypto stirs thread ids into
 * its random numbers, a log names pthread_self().  The leader keeps the kernel's
 * random layout; a follower's fresh program is laid out like its leader's.
 */
#ifndef MVE_OUTSIDE_LAYOUT_H
#define MVE_OUTSIDE_LAYOUT_H

#include <stdbool.h>
#include <sys/resource.h>

#include "engine/abi/layout.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/remote.h"

/* What a follower's program is to be like, and what is changed for it to become so. */
struct layout_wish {
	struct layout like;
	struct rlimit stack;	/* as it is without the wish */
	unsigned long persona;
};

/* How far the parts of a program were moved. */
struct layout_moves {
	uint64_t program, stack, block;
	uint64_t brk;		/* where it is to begin; 0: where it does */
};

/* What the tracee has, a fresh program, before anything of ours is in it. */
void layout_read(const struct remote *r, const struct maps *m, struct layout *out);

/* A wish of a process that is about to execute a program. */
struct layout_wish layout_wish(pid_t pid, const struct layout *like);

/*
 * In that process: the kernel shall begin the program's mappings where those of
 * `like` begin.  layout_settle() undoes it.
 */
void layout_ask(const struct layout *like);

/*
 * Moves what is still elsewhere, and changes r->regs accordingly.  What cannot be
 * moved stays: nothing depends on it but programs that tell addresses.
 */
void layout_settle(struct remote *r, const struct maps *m, const struct layout_wish *wish,
		   struct layout_moves *moved);

#endif
