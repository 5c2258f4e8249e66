/*
 * Inner descriptors: pipes, pairs and eventfds of the process itself, by which its
 * threads tell each other that there is something to do.  What a thread does before it
 * rings there, the other finds done when it has read; so the leader says of such a read
 * that it comes after all that others gave before (EVENT_AFTER), and shows in its lane
 * (`giving`) what is on its way and not yet told.
 *
 * How often an eventfd (a bell) is rung for the same thing depends on when the other
 * wakes: it is asked by bare atomics.
 *
 * Both a leader and a follower keep these bits: the one may become the other.
 */
#include "engine/core/walk.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/fd/table.h"

bool inner_is(long fd)
{
	return fd_is(fd, FD_INNER);
}

bool inner_is_bell(long fd)
{
	return fd_is(fd, FD_BELL);
}

static void pair_made(uint64_t at)
{
	int32_t fd[2];

	if (target_in(fd, at, sizeof(fd)))
		return;
	fd_set_mark(fd[0], FD_INNER, true);
	fd_set_mark(fd[1], FD_INNER, true);
}

void inner_made(const struct walk *w)
{
	const struct call_desc *d = w->desc;

	if (w->result < 0)
		return;
	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == KIND_MEM && d->args[i].what == LAYOUT_fdpair)
			pair_made(w->args[i]);
	if (d->result == KIND_FD)
		fd_set_mark(w->result, FD_INNER | FD_BELL, true);
}
