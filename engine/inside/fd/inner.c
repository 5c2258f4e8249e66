/*
 * Inner descriptors: pipes, pairs, eventfds and timerfds of the process itself, by which its
 * threads tell each other that there is something to do.  What a thread does before it
 * rings there, the other finds done when it has read: each has an object, by which a leader
 * says that the read comes behind the write (lanes/edge.h).  What is written to one end
 * of a pipe or pair is read at the other; that it is closed, too.  A signalfd's are the
 * process' signals.
 *
 * How often an eventfd (a bell) is rung for the same thing depends on when the other
 * wakes: it is asked by bare atomics.
 *
 * Both a leader and a follower keep these bits: the one may become the other.
 *
 * A process that was alone when it made them has no such bits.  Before it is copied the kernel is
 * asked what its descriptors are: of a pipe both ends must be its own, and of a pair it must be the
 * maker.  Which two sockets are a pair is not known: they have one object, an edge too many.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/lanes/edge.h"

bool inner_is(long fd)
{
	return fd_is(fd, FD_INNER);
}

bool inner_is_bell(long fd)
{
	return fd_is(fd, FD_BELL);
}

uint32_t object_behind(long fd)
{
	uint32_t at = object_at(fd);

	return inner_is_bell(fd) || at == OBJECT_OTHER ? at : at ^ 1;
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

/* What is read from it are signals. */
static bool of_signals(const struct call_desc *d)
{
	return d->args[1].kind == KIND_MEM && d->args[1].what == LAYOUT_sigset;
}

void inner_made(const struct walk *w)
{
	const struct call_desc *d = w->desc;

	if (w->result < 0)
		return;
	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == KIND_MEM && d->args[i].what == LAYOUT_fdpair)
			pair_made(w->args[i]);
	if (d->result != KIND_FD)
		return;
	if (of_signals(d))
		inner_mark(w->result, FD_INNER, OBJECT_SIGNALS);
	else
		inner_mark(w->result, FD_INNER | FD_BELL, objects_new());
}

/* --- of before ------------------------------------------------------------------------- */

/* Told apart by that of their inodes. */
#define PIPES		((OBJECT_CLOCKS - OBJECT_FIRST) / 2)
#define SOL_SOCKET_	1
#define SO_PEERCRED_	17

enum end { END_READS = 1, END_WRITES = 2, ENDS = 3 };

static uint8_t pipe_ends[PIPES];	/* that the process has */

_Static_assert(OBJECT_OTHER < OBJECT_FIRST, "what is met in no pipe has no pipe's object");

static bool begins(const char *text, const char *with)
{
	while (*with && *text == *with)
		text++, with++;
	return !*with;
}

static uint32_t pipe_of(const char *link)
{
	uint64_t inode = 0;

	for (; *link; link++)
		if (*link >= '0' && *link <= '9')
			inode = inode * 10 + (uint64_t)(*link - '0');
	return (uint32_t)(inode % PIPES);
}

/* It is inner when the other end is met: until then its object says which one it is. */
static void pipe_learn(long fd, const char *link)
{
	bool writes = (OWN3(__NR_fcntl, fd, F_GETFL, 0) & O_ACCMODE) == O_WRONLY;
	uint32_t pipe = pipe_of(link);
	struct fd_row *r = fd_row_make(fd);

	MUST(pipe < PIPES);
	if (!r)
		return;
	r->object = OBJECT_FIRST + 2 * pipe + writes;
	pipe_ends[pipe] |= writes ? END_WRITES : END_READS;
}

/* Unix sockets tell who made them: of a connection that would be the other's process. */
static bool is_own_pair(long fd)
{
	struct { int32_t pid; uint32_t uid, gid; } maker = { 0, 0, 0 };
	uint32_t size = sizeof(maker);

	return !OWN6(__NR_getsockopt, fd, SOL_SOCKET_, SO_PEERCRED_, &maker, &size, 0) &&
	       maker.pid == OWN0(__NR_getpid);
}

void inner_learn(long fd, const char *link)
{
	MUST(fd >= 0 && link);
	if (inner_is(fd))
		return;
	if (begins(link, "anon_inode:[eventfd]") || begins(link, "anon_inode:[timerfd]"))
		inner_mark(fd, FD_INNER | FD_BELL, objects_new());
	else if (begins(link, "anon_inode:[signalfd]"))
		inner_mark(fd, FD_INNER, OBJECT_SIGNALS);
	else if (begins(link, "pipe:["))
		pipe_learn(fd, link);
	else if (begins(link, "socket:[") && is_own_pair(fd))
		inner_mark(fd, FD_INNER, OBJECT_OTHER);
}

void inner_learnt(void)
{
	for (int64_t fd = fd_next(0); fd >= 0; fd = fd_next(fd + 1)) {
		uint32_t object = object_at(fd), pipe = (object - OBJECT_FIRST) / 2;

		if (object < OBJECT_FIRST || fd_is(fd, FD_INNER | FD_SET) || pipe >= PIPES)
			continue;
		if (pipe_ends[pipe] == ENDS)
			fd_set_mark(fd, FD_INNER, true);
		else
			fd_row(fd)->object = OBJECT_OTHER;
	}
	bytes_zero(pipe_ends, sizeof(pipe_ends));
}
