/*
 * The limit of descriptors.  A sandbox takes what is left of it away, to 0 even; nothing
 * can be received then, and a hard limit is not raised again.  A follower that had it for
 * real could never take its leader's descriptors over.  So it keeps a limit that is lowered
 * to itself, tells the program what it believes, and makes it real when it has taken.  One
 * that is raised is real at once: there must be room for what the leader opens.
 *
 * A leader's limit is always real.  When it follows again it keeps that, and lifts what the
 * kernel lets it lift; the monitor looks whether that is enough (takeover_room.c).
 */
#include <asm/unistd.h>
#include <linux/resource.h>
#include <linux/sched.h>

#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/state/limits.h"

#define ROOM	1024u	/* for what a follower opens for itself */

/* The process's; a child of fork has a copy. */
static struct limit kept;
static uint32_t is_kept;
static struct limit was;	/* before it was lifted; of the thread that takes */

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t higher(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct limit limit_real(void)
{
	struct limit l = { ROOM, ROOM };

	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &l);
	return l;
}

static void limit_set(struct limit l)
{
	struct limit real = limit_real();

	if (l.now != real.now || l.max != real.max)
		OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, &l, 0);
}

/* It has its parent's memory, but limits of its own, and is about to run another program. */
static bool is_guest(const struct thread *t)
{
	return (t->clone_flags & (CLONE_VM | CLONE_THREAD)) == CLONE_VM;
}

/* Whether it is about this process's; the limit to be set, or 0, and where the old one goes. */
static bool is_ours(const struct thread *t, long nr, uint64_t *set, uint64_t *get)
{
	const struct frame *f = &t->frame;
	bool pr = nr == __NR_prlimit64;

	if (!pr && nr != __NR_setrlimit && nr != __NR_getrlimit)
		return false;
	*set = pr ? f->rdx : nr == __NR_setrlimit ? f->rsi : 0;
	*get = pr ? f->arg[3] : nr == __NR_getrlimit ? f->rsi : 0;
	if (pr && (int32_t)f->rdi && (int32_t)f->rdi != t->vpid)
		return false;
	return (uint32_t)(pr ? f->rsi : f->rdi) == RLIMIT_NOFILE && !is_guest(t);
}

bool limits_keep(const struct thread *t, long nr)
{
	struct limit real, want;
	uint64_t set, get;

	if (!is_ours(t, nr, &set, &get) || !set || target_in(&want, set, sizeof(want)))
		return false;
	real = limit_real();
	limit_set((struct limit){ higher(real.now, want.now), higher(real.max, want.max) });
	kept = want;
	is_kept = 1;
	return true;
}

bool limits_asked(struct thread *t, long nr, long *result)
{
	uint64_t set, get;

	if (!is_kept || !is_ours(t, nr, &set, &get) || set)
		return false;
	*result = get ? target_out(get, &kept, sizeof(kept)) : 0;
	t->answered = 1;
	return true;
}

void limits_lift(void)
{
	was = limit_real();
	limit_set((struct limit){ was.max, was.max });
}

void limits_settle(struct thread *t)
{
	if (is_guest(t) || !is_kept) {
		limit_set(was);
		return;
	}
	limit_set(kept);
	is_kept = 0;
}

/* What a child that shares this memory has set for itself is lower still. */
void limits_exec(struct thread *t)
{
	struct limit real;

	if (!t->following || !is_kept)
		return;
	real = limit_real();
	limit_set((struct limit){ lower(real.now, kept.now), lower(real.max, kept.max) });
}

void limits_follow(struct thread *t)
{
	struct limit real = limit_real();

	(void)t;
	if (real.now >= ROOM)
		return;
	kept = real;
	is_kept = 1;
	limit_set((struct limit){ lower(real.max, ROOM), real.max });
}
