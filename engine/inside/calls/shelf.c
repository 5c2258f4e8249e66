/*
 * The shelf: patched code that the monitor keeps for all processes, mapped into each, out of
 * the way (outside/patch/shelf.c).  A part of it takes the place of a file's mapping at one
 * go, and is no longer where it was: nobody else's memory may be taken for it, so boot has
 * a bit for each part that has been moved.
 */
#include <asm/unistd.h>
#include <linux/mman.h>

#include "engine/core/must.h"
#include "engine/inside/calls/shelf.h"
#include "engine/inside/gate/gate.h"

bool shelf_move(const struct code_move *m)
{
	MUST(boot.shelf && m->len && m->from + m->len <= boot.shelf_len);
	return OWN6(__NR_mremap, boot.shelf + m->from, m->len, m->len,
		    MREMAP_MAYMOVE | MREMAP_FIXED, m->to, 0) == (long)m->to;
}

/* Code that could not be moved is the file's: its calls stand there, for the net. */
void shelf_begin(void)
{
	MUST(boot.moves <= BOOT_MOVES);
	for (uint64_t i = 0; i < boot.moves; i++)
		if (!shelf_move(&boot.move[i]))
			boot.sealed = SEAL_BROKEN;
}
