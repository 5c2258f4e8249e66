/*
 * Landlock: what the leader has forbidden itself, a follower forbids itself, for it may come
 * to lead.  The descriptor of a rule set is the leader's; the follower makes a rule set of its
 * own behind it, adds the same rules, by the paths of the leader's descriptors, and restricts
 * the thread whose twin did.  What the leader's calls answered counts.
 *
 * Where a rule cannot be made the follower is confined further than its leader.  Where a rule
 * set cannot it is confined less, and that is said.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/landlock.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/request.h"

/*
 * Limit (takeovers): rule sets of Landlock that are open at a time. Beyond: a follower is not
 * confined by further ones, which is said.
 */
#define RULESETS	16
#define PATH_BENEATH	1	/* a rule of this type names a descriptor */
#define PARENT_AT	8	/* in its attribute, of so many bytes */
#define BENEATH_SIZE	12

/* The leader's descriptor, + 1 (0: the row is free), and ours. */
static struct ruleset { int32_t leaders, own; } rulesets[RULESETS];
static bool rulesets_used;	/* there has been one */

static struct ruleset *ruleset_find(int64_t fd)
{
	MUST(latch_is_held(LATCH_rulesets));
	for (int i = 0; i < RULESETS; i++)
		if (rulesets[i].leaders == fd + 1)
			return &rulesets[i];
	return NULL;
}

static void ruleset_drop(struct ruleset *r)
{
	OWN1(__NR_close, r->own);
	r->leaders = 0;
}

/* With flags it is a question. */
static void ruleset_made(const uint64_t *args, int64_t leaders)
{
	long own = args[2] ? -EINVAL : OWN3(__NR_landlock_create_ruleset, args[0], args[1], 0);
	struct ruleset *r;

	if (own < 0)
		return;
	own = number_high(own);
	latch_take(LATCH_rulesets);
	rulesets_used = true;
	r = ruleset_find(leaders);
	if (r)
		ruleset_drop(r);
	r = r ? r : ruleset_find(-1);
	if (r && own >= 0)
		*r = (struct ruleset){ (int32_t)leaders + 1, (int32_t)own };
	else if (own >= 0)
		OWN1(__NR_close, own);
	latch_give(LATCH_rulesets);
}

void landlock_gone(struct thread *t, struct numbers n)
{
	(void)t;
	for (struct ruleset *r = rulesets; rulesets_used && r < rulesets + RULESETS; r++) {
		latch_take(LATCH_rulesets);
		if (r->leaders && r->leaders - 1 >= n.first && r->leaders - 1 <= n.last)
			ruleset_drop(r);
		latch_give(LATCH_rulesets);
	}
}

/* Ours is copied as theirs is. */
void landlock_copied(int64_t from, int64_t to)
{
	struct ruleset *r, *c;

	if (!rulesets_used)
		return;
	latch_take(LATCH_rulesets);
	r = ruleset_find(from);
	c = r ? ruleset_find(-1) : NULL;
	if (c) {
		long own = OWN3(__NR_fcntl, r->own, F_DUPFD_CLOEXEC, r->own);

		if (own >= 0)
			*c = (struct ruleset){ (int32_t)to + 1, (int32_t)own };
	}
	latch_give(LATCH_rulesets);
}

static void beneath_add(int32_t own, uint64_t attr, uint64_t flags)
{
	uint8_t rule[BENEATH_SIZE] __attribute__((aligned(8)));
	const struct file *f;
	long fd;

	if (target_in(rule, attr, sizeof(rule)))
		return;
	f = file_row(*(const int32_t *)(rule + PARENT_AT));
	fd = f && f->known ? file_open_path(f) : -EBADF;
	if (fd < 0)
		return;
	*(int32_t *)(rule + PARENT_AT) = (int32_t)fd;
	OWN4(__NR_landlock_add_rule, own, PATH_BENEATH, rule, flags);
	OWN1(__NR_close, fd);
}

/* False: the twin is confined by it, and we are not. */
static bool confine(const struct thread *t, const struct ruleset *r, long nr)
{
	const struct frame *f = &t->frame;

	if (nr == __NR_landlock_restrict_self)
		return r && !OWN2(__NR_landlock_restrict_self, r->own, f->rsi);
	if (!r)
		return true;
	if (f->rsi == PATH_BENEATH)
		beneath_add(r->own, f->rdx, f->r10);
	else
		OWN4(__NR_landlock_add_rule, r->own, f->rsi, f->rdx, f->r10);
	return true;
}

static void freer_say(struct thread *t)
{
	static uint32_t said;

	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		request_ask(t, REQ_NOTE, NOTE_CONFINED, 0, 0);
}

void landlock_note(struct thread *t, const struct walk *w)
{
	bool as_twin;

	if (w->desc->nr == __NR_landlock_create_ruleset) {
		ruleset_made(w->args, w->result);
		return;
	}
	latch_take(LATCH_rulesets);
	as_twin = confine(t, ruleset_find((int32_t)w->args[0]), w->desc->nr);
	latch_give(LATCH_rulesets);
	if (!as_twin)
		freer_say(t);
}

/* It leads: the true ones are here. */
void landlock_make(struct thread *t)
{
	(void)t;
	for (int i = 0; i < RULESETS; i++)
		if (rulesets[i].leaders)
			ruleset_drop(&rulesets[i]);
}
