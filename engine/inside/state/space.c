/*
 * Limits of a program's memory.  A server that limits its address space leaves itself little
 * more than it needs; what mve maps in it, rings above all, would count, and the server break.
 * So a limit that a program sets is made wider by that, in the kernel, and is told to the
 * program as it has set it.  The hard limit is wider by what may come later, too (mve follow
 * NAME), for a process without rights cannot raise it then.
 *
 * Which limits are wider goes from program to program (HIDDEN_SPACE, HIDDEN_DATA): how much
 * wider hangs on the session alone.  A limit from before the session, or set by another
 * process, stays as it is, and mve's memory counts.
 */
#include <asm/unistd.h>
#include <linux/resource.h>

#include "engine/abi/boot.h"
#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/state/limits.h"
#include "engine/inside/state/space.h"

/* The image, boards, tables and blocks: see README.md, "Known limits". */
#define OWN_SPACE	(128ull << 20)
#define OWN_DATA	(16ull << 20)
#define UNLIMITED	(~0ull)

static const struct space_row {
	uint32_t resource, bit;
	uint64_t own;
	bool maps;		/* streams count, too */
} rows[] = {
	{ RLIMIT_AS, HIDDEN_SPACE, OWN_SPACE, true },
	{ RLIMIT_DATA, HIDDEN_DATA, OWN_DATA, false },
};

static uint32_t wider;		/* the process's, as bits */

static const struct space_row *row_of(uint32_t resource)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].resource == resource)
			return &rows[i];
	return NULL;
}

static uint32_t *bits_of(struct thread *t)
{
	return is_guest(t) ? &t->wider : &wider;
}

uint32_t space_bits(const struct thread *t)
{
	return is_guest(t) ? t->wider : wider;
}

void space_begin(void)
{
	wider = boot.hidden & (HIDDEN_SPACE | HIDDEN_DATA);
}

/* By how much each is wider. */
static struct limit row_adds(const struct space_row *r)
{
	const struct conduct *c = streams.conduct;
	uint64_t now = c ? section_offset(c->chunks, c->sections) : 0;
	uint64_t later = c ? now : streams_size((RING_DEFAULT + LOG_MAX_UNASKED) / CHUNK_SIZE);

	if (!r->maps)
		now = later = 0;
	return (struct limit){ r->own + now, r->own + later };
}

static uint64_t more(uint64_t limit, uint64_t add)
{
	return limit > UNLIMITED - add ? UNLIMITED : limit + add;
}

static uint64_t less(uint64_t limit, uint64_t add)
{
	return limit == UNLIMITED ? limit : limit > add ? limit - add : 0;
}

static struct limit limit_more(struct limit l, struct limit add)
{
	return (struct limit){ more(l.now, add.now), more(l.max, add.max) };
}

static struct limit limit_less(struct limit l, struct limit add)
{
	return (struct limit){ less(l.now, add.now), less(l.max, add.max) };
}

static long limit_swap(uint32_t resource, const struct limit *set, struct limit *get)
{
	return OWN4(__NR_prlimit64, 0, resource, set, get);
}

/* A hard limit from before the session may be in the way. */
static bool may_widen(const struct space_row *r, uint64_t max)
{
	struct limit was, try;

	if (limit_swap(r->resource, NULL, &was) || was.max >= max)
		return true;
	try = (struct limit){ was.now, max };
	if (limit_swap(r->resource, &try, NULL))
		return false;
	limit_swap(r->resource, &was, NULL);
	return true;
}

/* The call, with another limit than the program's. */
static long call_with(struct thread *t, const struct limit_call *c, struct limit *set)
{
	uint64_t *arg = &t->frame.arg[c->set_arg], was = *arg;
	long result;

	*arg = (uint64_t)set;
	result = call_kernel(t);
	*arg = was;
	return result;
}

static long row_set(struct thread *t, const struct space_row *r, const struct limit_call *c)
{
	uint32_t *bits = bits_of(t);
	struct limit want;
	long result;

	MUST(c->set && r->bit);
	if (target_in(&want, c->set, sizeof(want)) || want.now > want.max)
		return call_kernel(t);
	want = limit_more(want, row_adds(r));
	if (!(*bits & r->bit) && !may_widen(r, want.max))
		return call_kernel(t);
	result = call_with(t, c, &want);
	if (!result)
		*bits |= r->bit;
	return result;
}

static void row_tell(const struct space_row *r, uint64_t at)
{
	struct limit l;

	if (target_in(&l, at, sizeof(l)))
		return;
	l = limit_less(l, row_adds(r));
	target_out(at, &l, sizeof(l));
}

long serve_limit(struct thread *t, long nr)
{
	const struct space_row *r;
	struct limit_call c;
	bool was;
	long result;

	if (!limits_call(t, nr, &c) || !(r = row_of(c.resource)))
		return call_kernel(t);
	was = *bits_of(t) & r->bit;
	result = c.set ? row_set(t, r, &c) : call_kernel(t);
	if (!result && c.get && was)
		row_tell(r, c.get);
	return result;
}

void space_grow(int64_t bytes)
{
	struct limit l;

	if (!(wider & HIDDEN_SPACE) || limit_swap(RLIMIT_AS, NULL, &l) || l.now == UNLIMITED)
		return;
	l.now += (uint64_t)bytes;
	if (l.now > l.max)
		l.now = l.max;
	limit_swap(RLIMIT_AS, &l, NULL);
}

void space_end(void)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct limit l;

		if (!(wider & rows[i].bit) || limit_swap(rows[i].resource, NULL, &l))
			continue;
		l = limit_less(l, row_adds(&rows[i]));
		limit_swap(rows[i].resource, &l, NULL);
	}
	wider = 0;
}
