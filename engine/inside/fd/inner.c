/*
 * Inner descriptors: pipes, pairs and eventfds of the process itself, by which its
 * threads tell each other that there is something to do.  What a thread does before it
 * rings there, the other finds done when it has read: each has an object, by which a leader
 * says that the read comes behind the write (lanes/edge.h).  What is written to one end
 * of a pipe or pair is read at the other.
 *
 * How often an eventfd (a bell) is rung for the same thing depends on when the other
 * wakes: it is asked by bare atomics.
 *
 * Both a leader and a follower keep these bits: the one may become the other.
 */
#include "engine/core/walk.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/lanes/edge.h"

bool inner_is(long fd)
{
	return fd_is(fd, FD_INNER);
}

bool inner_is_bell(long fd)
{
	return fd_is(fd, FD_BELL);
}

uint32_t object_at(long fd)
{
	const struct fd_row *r = fd_row(fd);

	return r ? r->object : OBJECT_OTHER;
}

uint32_t object_behind(long fd)
{
	return inner_is_bell(fd) ? object_at(fd) : object_at(fd) ^ 1;
}

static void inner_mark(long fd, unsigned marks, uint32_t object)
{
	struct fd_row *r = fd_row_make(fd);

	if (r)
		r->object = object;
	fd_set_mark(fd, marks, true);
}

static void pair_made(uint64_t at)
{
	uint32_t object = objects_new();
	int32_t fd[2];

	if (target_in(fd, at, sizeof(fd)))
		return;
	inner_mark(fd[0], FD_INNER, object);
	inner_mark(fd[1], FD_INNER, object ^ 1);
}

void set_made(long fd)
{
	inner_mark(fd, FD_SET, objects_new());
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
		inner_mark(w->result, FD_INNER | FD_BELL, objects_new());
}
