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

#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/state/limits.h"

#define ROOM	1024u	/* for what a follower opens for itself */

/* The process's; a child of fork has a copy. */
static struct limit kept;
static uint32_t is_kept;
LEADS static struct limit was;	/* before it was lifted; of the thread that takes */

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

bool limits_call(const struct thread *t, long nr, struct limit_call *c)
{
	const struct frame *f = &t->frame;
	bool pr = nr == __NR_prlimit64;
	int32_t pid = pr ? (int32_t)f->rdi : 0;

	if (!pr && nr != __NR_setrlimit && nr != __NR_getrlimit)
		return false;
	if (pr)
		*c = (struct limit_call){ (uint32_t)f->rsi, 2, f->rdx, f->arg[3] };
	else if (nr == __NR_setrlimit)
		*c = (struct limit_call){ (uint32_t)f->rdi, 1, f->rsi, 0 };
	else
		*c = (struct limit_call){ (uint32_t)f->rdi, 1, 0, f->rsi };
	return !pid || pid == t->pid || (t->following && pid == t->vpid);
}

/* The same, of the limit that is kept. */
static bool is_ours(const struct thread *t, long nr, struct limit_call *c)
{
	return limits_call(t, nr, c) && c->resource == RLIMIT_NOFILE && !is_guest(t);
}

bool limits_keep(const struct thread *t, long nr)
{
	struct limit real, want;
	struct limit_call c;

	if (!is_ours(t, nr, &c) || !c.set || target_in(&want, c.set, sizeof(want)))
		return false;
	real = limit_real();
	limit_set((struct limit){ higher(real.now, want.now), higher(real.max, want.max) });
	kept = want;
	is_kept = 1;
	return true;
}

bool limits_asked(struct thread *t, long nr, long *result)
{
	struct limit_call c;

	if (!is_kept || !is_ours(t, nr, &c) || c.set)
		return false;
	*result = c.get ? target_out(c.get, &kept, sizeof(kept)) : 0;
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
