/*
 * Private files: what libc reads of the machine for itself, at moments that depend on
 * which thread came first to a lock of its own: how many processors there are before
 * malloc makes another arena, whether memory may be overcommitted before it gives some
 * back.  Each version opens, reads and closes them for real, and nothing is told.
 *
 * A leader's descriptor of one has whatever number the kernel gives, and the stream
 * tells no other use of it.  A follower's must not be a number of the stream: it is
 * among the highest that the process may have.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/resource.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/calls/private.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"

uint32_t private_count;

/* Each is longer than a word: may_be_private(). */
static const char paths[][40] = {
	"/sys/devices/system/cpu/online",
	"/sys/devices/system/cpu",
	"/proc/sys/vm/overcommit_memory",
};

static bool path_is(uint64_t at, const char *path)
{
	for (uint32_t i = 0;; i++) {
		char c;

		if (target_in(&c, at + i, 1) || c != path[i])
			return false;
		if (!c)
			return true;
	}
}

struct packed_u64 {
	uint64_t value;
} __attribute__((packed, may_alias));

/* Most paths are none of them by their first word. */
static bool may_be_private(uint64_t at)
{
	uint64_t word;

	if (target_in(&word, at, sizeof(word)))
		return true;	/* it ends with its page, or is bad */
	for (uint32_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (word == ((const struct packed_u64 *)paths[i])->value)
			return true;
	return false;
}

bool private_path(uint64_t at)
{
	if (!may_be_private(at))
		return false;
	for (uint32_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (path_is(at, paths[i]))
			return true;
	return false;
}

/* The thread that was given the number is the only one that knows it. */
static void note(long fd, bool open)
{
	fd_set_mark(fd, FD_PRIVATE, open);
	if (open)
		tell_stop(TELL_PRIVATE);
	if (open && ways_are_hushed())
		ways_hush(false);
	if (!__atomic_add_fetch(&private_count, open ? 1u : ~0u, __ATOMIC_RELAXED))
		tell_go(TELL_PRIVATE);
	/* Another may have been opened between the two; both are locked instructions. */
	if (__atomic_load_n(&private_count, __ATOMIC_RELAXED))
		tell_stop(TELL_PRIVATE);
}

static long given(struct thread *t, long fd)
{
	if (t->following && fd >= 0)
		fd = number_high(fd);
	if (fd_row_make(fd))
		note(fd, true);
	return fd;
}

static bool takes_number(const struct call_desc *d)
{
	return d && (d->args[0].kind == KIND_FD || d->args[0].kind == KIND_DIRFD);
}

void private_gone(struct thread *t, struct numbers n)
{
	(void)t;
	for (int64_t fd = private_count ? fd_next(n.first) : -1; fd >= 0 && fd <= n.last;
	     fd = fd_next(fd + 1))
		if (fd_is(fd, FD_PRIVATE))
			note(fd, false);
}

bool private_is(const struct thread *t, const struct call_desc *d)
{
	if (call_has(d, TRAIT_OPENS))
		return private_path(t->frame.arg[call_path_arg(d)]);
	return private_count && takes_number(d) && fd_is((int32_t)t->frame.rdi, FD_PRIVATE);
}

bool private_call(struct thread *t, long nr, long *result)
{
	const struct call_desc *d = call_find(nr);

	if (!private_is(t, d))
		return false;
	if (call_has(d, TRAIT_CLOSES))
		note((int32_t)t->frame.rdi, false);
	*result = call_serve(t, nr);
	if (call_has(d, TRAIT_OPENS) || d->result == KIND_FD)
		*result = given(t, *result);
	return true;
}
