/*
 * The descriptors of a process whose threads all stand: see abi/standing.h.  Asking for
 * the flags of one's own descriptor is the cheapest of calls; from outside only /proc tells
 * them.  The last thread to come to stand looks, before it says that it stands, so that
 * the monitor finds it done; whoever goes on first takes it back.  Where processes share
 * memory nobody looks, since each has descriptors of its own.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

#include "engine/abi/standing.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/takeover/standing.h"

#define LEAST	64u	/* numbers looked at: the least table of the kernel's */

_Static_assert(STANDING_FDS % 64 == 0 && STANDING_FDS >= LEAST, "words of bits");

_Static_assert(!(LEAST & (LEAST - 1)) && !(STANDING_FDS & (STANDING_FDS - 1)), "it is doubled");
struct standing_fds standing_fds;

void standing_ready(void)
{
	pages_own(&standing_fds, sizeof(standing_fds.word[0]) + 8);
}

static bool all_stand(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		/* Of two that come at once one sees the other. */
		if (o->pid != t->pid || !LOOK(standing, &o->standing))
			return false;
	return true;
}

static void number_look(uint32_t fd)
{
	struct standing_fds *s = &standing_fds;
	long flags = OWN3(__NR_fcntl, fd, F_GETFD, 0);
	uint64_t bit = 1ull << fd % 64;

	MUST(fd < STANDING_FDS);
	if (flags < 0)
		return;
	s->word[fd / 64].open |= bit;
	if (flags & FD_CLOEXEC)
		s->word[fd / 64].cloexec |= bit;
}

/*
 * The kernel's table is a power of two as well: where the numbers are used one after the
 * other we see all of it, and the monitor knows that nothing is left.  Half of the least table
 * is as good as none: clients may wait for each look.
 */
static void numbers_look(void)
{
	struct standing_fds *s = &standing_fds;

	s->looked = 0;
	for (uint32_t end = LEAST; s->looked < end;) {
		if (s->looked % 64 == 0)
			s->word[s->looked / 64] = (struct standing_word){ 0, 0 };
		number_look(s->looked++);
		if (s->looked == end && s->word[(end - 1) / 64].open >> (end == LEAST ? 32 : 0) &&
		    end < STANDING_FDS)
			end *= 2;
	}
}

bool standing_wanted(void)
{
	return streams.conduct && conduct_has(&streams.conduct->park);
}

/* The monitor looks for what came to us and was not told. */
static void untold_show(struct thread *t)
{
	if (!t->following && t->has_lane && (t->pending || t->deferred))
		bytes_copy(t->slot->untold, t->held_info, sizeof(t->slot->untold));
	else
		bytes_zero(t->slot->untold, sizeof(t->slot->untold));
}

void standing_begin(struct thread *t)
{
	MUST(!t->standing);
	MUST(t == thread_self());	/* another's descriptors may be another's */
	untold_show(t);
	ANNOUNCE(standing, &t->standing, 1);
	if (!streams.conduct || !all_stand(t))
		return;
	numbers_look();
	/* The monitor, which reads this when the thread stands, finds the rest written. */
	PUBLISH(standing_valid, &standing_fds.valid, STANDING_VALID);
}

/* All of few: the monitor need not read it when clients wait. */
void standing_tell(uint64_t *words)
{
	const struct standing_fds *s = &standing_fds;
	uint32_t looked = s->valid && s->looked <= STANDING_TOLD * 64 ? s->looked : 0;

	MUST(words);
	for (uint32_t i = 0; i < STANDING_TOLD; i++) {
		words[2 * i] = 64 * i < looked ? s->word[i].open : 0;
		words[2 * i + 1] = 64 * i < looked ? s->word[i].cloexec : 0;
	}
	words[2 * STANDING_TOLD] = looked;
}

void standing_end(struct thread *t)
{
	MUST(t->standing);
	PUBLISH_BY(standing_valid, exchange_n, &standing_fds.valid, 0);
	ANNOUNCE(standing, &t->standing, 0);
}
