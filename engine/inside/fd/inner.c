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

#define NUMBERS		65536

static uint64_t inner[NUMBERS / 64], bells[NUMBERS / 64];

static bool bit_is(const uint64_t *bits, long fd)
{
	return fd >= 0 && fd < NUMBERS &&
	       __atomic_load_n(&bits[fd / 64], __ATOMIC_RELAXED) >> fd % 64 & 1;
}

static void bit_set(uint64_t *bits, long fd, bool on)
{
	if (fd < 0 || fd >= NUMBERS || bit_is(bits, fd) == on)
		return;
	if (on)
		__atomic_fetch_or(&bits[fd / 64], 1ull << fd % 64, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&bits[fd / 64], ~(1ull << fd % 64), __ATOMIC_RELAXED);
}

bool inner_is(long fd)
{
	return bit_is(inner, fd);
}

bool inner_is_bell(long fd)
{
	return bit_is(bells, fd);
}

void inner_closed(long fd)
{
	bit_set(inner, fd, false);
	bit_set(bells, fd, false);
}

static void pair_made(uint64_t at)
{
	int32_t fd[2];

	if (target_in(fd, at, sizeof(fd)))
		return;
	bit_set(inner, fd[0], true);
	bit_set(inner, fd[1], true);
}

static void copy_made(long from, long to)
{
	bit_set(inner, to, bit_is(inner, from));
	bit_set(bells, to, bit_is(bells, from));
}

void inner_made(const struct walk *w)
{
	const struct call_desc *d = w->desc;

	if (w->result < 0)
		return;
	if (call_has(d, TRAIT_COPIES)) {
		copy_made((int32_t)w->args[0], w->result);
		return;
	}
	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == KIND_MEM && d->args[i].what == LAYOUT_fdpair)
			pair_made(w->args[i]);
	if (d->result == KIND_FD) {
		bit_set(inner, w->result, true);
		bit_set(bells, w->result, true);
	}
}
