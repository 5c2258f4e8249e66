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
#include <asm/unistd.h>

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

bool inner_makes(long nr)
{
	switch (nr) {
	case __NR_pipe:
	case __NR_pipe2:
	case __NR_socketpair:
	case __NR_eventfd:
	case __NR_eventfd2:
	case __NR_dup:
	case __NR_dup2:
	case __NR_dup3:
	case __NR_fcntl:
		return true;
	default:
		return false;
	}
}

void inner_made(const struct walk *w)
{
	long from = (int32_t)w->args[0];

	if (w->result < 0)
		return;
	switch (w->desc->nr) {
	case __NR_pipe:
	case __NR_pipe2:
		pair_made(w->args[0]);
		break;
	case __NR_socketpair:
		pair_made(w->args[3]);
		break;
	case __NR_eventfd:
	case __NR_eventfd2:
		bit_set(inner, w->result, true);
		bit_set(bells, w->result, true);
		break;
	default:
		if (w->desc->result != KIND_FD)
			break;
		bit_set(inner, w->result, bit_is(inner, from));
		bit_set(bells, w->result, bit_is(bells, from));
	}
}
