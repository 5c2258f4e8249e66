/*
 * Exact decoding of one function, from its start, instruction by instruction.
 *
 * It says of each byte pair whether it is an instruction or lies inside one,
 * keeps the neighbours of those that are, and marks every place near them that
 * something in the function may branch to: direct branches, addresses that a
 * `lea` takes, and entries of tables that might be jump tables.
 *
 * Decoding proves itself: if a byte is no instruction, or a branch lands inside
 * one (after a lock prefix excepted, which libc does), there is data in between
 * or the start was wrong, and nothing in the function is to be trusted.
 *
 * In a gap, where the functions are not known, wrong decoding counts up to
 * BAD_BLOCKS away, and a jump through a table counts if no place that is called
 * lies between it and the site: a function does not reach over the start of the
 * next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "engine/core/must.h"
#include "engine/outside/plan/plan_parts.h"

#define SPAN_MAX	((uint64_t)256 << 20)
#define BLOCK_SHIFT	12	/* trouble in a gap is told by 4 KiB blocks */
#define BAD_BLOCKS	1	/* how many blocks away it still counts */
#define TABLE_REACH	32768	/* bytes to look for the start of a function in a gap */
#define TABLES_MAX	64
#define TABLE_ROWS_MAX	4096

struct flow {
	const struct elf_view *v;
	const struct span *s;
	const uint8_t *p;
	uint64_t len;
	struct cand *cand;	/* those of this span */
	unsigned n, now;	/* now: the next that decoding will meet */
	unsigned open;		/* the first that still collects what follows */
	/* A bit per byte of the span; the last two in gaps only. */
	uint64_t *bounds, *targets, *calls, *jumps;
	uint8_t *bad_block;	/* a byte per block */
	bool bad, table;	/* anywhere */
	struct insn ring[NEAR_INSNS];
	unsigned nring;
	uint64_t tables[TABLES_MAX];	/* addresses that may be jump tables */
	unsigned ntables;
};

static void set_bit(uint64_t *bits, uint64_t i)
{
	bits[i >> 6] |= (uint64_t)1 << (i & 63);
}

static bool get_bit(const uint64_t *bits, uint64_t i)
{
	return bits[i >> 6] >> (i & 63) & 1;
}

static void note_bad(struct flow *f, uint64_t rel)
{
	MUST(rel < f->len);
	f->bad_block[rel >> BLOCK_SHIFT] = 1;
	f->bad = true;
}

/* A jump with targets that are not all known. */
static void note_jump(struct flow *f, uint64_t vaddr)
{
	if (f->jumps)
		set_bit(f->jumps, vaddr - f->s->start);
	f->table = true;
}

static void mark(struct flow *f, uint64_t target)
{
	struct cands cs = { f->cand, f->n, f->n };

	cands_mark(&cs, target);
}

static void take_branch(struct flow *f, const struct insn *i)
{
	uint64_t rel = i->imm - f->s->start;

	if (rel >= f->len)
		return;
	set_bit(f->targets, rel);
	if (f->calls && i->flags & INSN_CALL)
		set_bit(f->calls, rel);
	mark(f, i->imm);
}

static void note_table(struct flow *f, uint64_t vaddr)
{
	if (f->ntables < TABLES_MAX)
		f->tables[f->ntables++] = vaddr;
}

/* A label whose address is taken may be jumped to from anywhere. */
static void take_lea(struct flow *f, const struct insn *i)
{
	uint64_t rel = i->imm - f->s->start;

	if (rel && rel < f->len) {
		mark(f, i->imm);
		note_jump(f, i->at);
	} else if (rel >= f->len) {
		note_table(f, i->imm);
	}
}

static void keep_before(struct flow *f, struct cand *c)
{
	unsigned n = f->nring < NEAR_INSNS ? f->nring : NEAR_INSNS;

	for (unsigned i = 0; i < n; i++)
		c->before[i] = f->ring[(f->nring - 1 - i) % NEAR_INSNS];
	c->nbefore = (uint8_t)n;
}

static uint32_t pair_flag(const struct cand *c)
{
	switch (c->pair) {
	case SITE_INT80:
		return INSN_INT80;
	case SITE_SYSENTER:
		return INSN_SYSENTER;
	case SITE_INSN:
		return INSN_MACHINE;
	default:
		return INSN_SYSCALL;
	}
}

/* The candidates that begin inside this instruction. */
static void meet(struct flow *f, const struct insn *i)
{
	for (; f->now < f->n && f->cand[f->now].vaddr < i->at + i->len; f->now++) {
		struct cand *c = &f->cand[f->now];

		if (c->vaddr < i->at)
			continue;	/* in bytes that do not decode */
		if (!(i->flags & pair_flag(c))) {
			c->state = CAND_INSIDE;
		} else if (c->pair == SITE_INSN) {
			c->state = CAND_SITE;	/* with any prefix: its own bytes are marked */
		} else if (c->vaddr != i->at || i->len != SITE_BYTES) {
			c->state = CAND_DOUBT;	/* with a prefix: leave it alone */
		} else {
			c->state = CAND_SITE;
			keep_before(f, c);
		}
	}
}

/* Gives the instruction to the candidates that wait for their followers. */
static void follow(struct flow *f, const struct insn *i)
{
	MUST(f->open <= f->now && f->now <= f->n);
	for (unsigned k = f->open; k < f->now; k++) {
		struct cand *c = &f->cand[k];

		if (c->state == CAND_SITE && c->vaddr < i->at && c->nafter < NEAR_INSNS)
			c->after[c->nafter++] = *i;
		else if (k == f->open && c->vaddr < i->at)
			f->open++;
	}
}

static void take_insn(struct flow *f, const struct insn *i)
{
	uint64_t rel = i->at - f->s->start;

	MUST(i->len && i->len <= f->len - rel);	/* one byte of it may be told apart */
	set_bit(f->bounds, rel);
	if (i->flags & INSN_LOCK && i->len > 1)
		set_bit(f->bounds, rel + 1);
	meet(f, i);
	follow(f, i);
	if (i->flags & INSN_BRANCH)
		take_branch(f, i);
	if (i->flags & INSN_LEA)
		take_lea(f, i);
	if (i->flags & INSN_INDIRECT) {
		note_jump(f, i->at);
		note_table(f, i->imm);
	}
	f->ring[f->nring++ % NEAR_INSNS] = *i;
}

static void decode(struct flow *f)
{
	struct insn i;

	for (uint64_t rel = 0; rel < f->len;) {
		if (insn_decode(f->p + rel, f->len - rel, f->s->start + rel, &i)) {
			take_insn(f, &i);
			rel += i.len;
			continue;
		}
		note_bad(f, rel);
		f->nring = 0;
		f->open = f->now;
		rel++;
	}
}

/*
 * Padding behind the function's end, for a window that needs room after `ret`.
 * It counts only up to the next function's start, or to where functions start.
 */
static void take_padding(struct flow *f)
{
	uint64_t end = f->s->end, at = end;
	struct insn i;

	while (at < f->s->next && at - end < 64) {
		const uint8_t *p = elf_at(f->v, at, 1);
		uint64_t left = f->s->next - at < 15 ? f->s->next - at : 15;

		if (!p || !elf_at(f->v, at, left) || !insn_decode(p, left, at, &i) ||
		    !(i.flags & INSN_PAD))
			break;
		at += i.len;
	}
	if (at != f->s->next)
		at &= ~(uint64_t)15;
	for (uint64_t to = at, rel = end; rel < to; rel += i.len) {
		const uint8_t *p = elf_at(f->v, rel, to - rel);

		if (!p || !insn_decode(p, to - rel, rel, &i))
			return;
		follow(f, &i);
	}
}

/* Marks the rows of what may be a table of offsets or of addresses. */
static void read_table(struct flow *f, uint64_t base, unsigned width)
{
	for (unsigned i = 0; i < TABLE_ROWS_MAX; i++) {
		const uint8_t *row = elf_at(f->v, base + (uint64_t)i * width, width);
		uint64_t target;

		if (!row)
			return;
		target = width == 8 ? get64(row) : base + (uint64_t)(int64_t)(int32_t)get32(row);
		if (target - f->s->start >= f->len)
			return;
		mark(f, target);
	}
}

static void read_tables(struct flow *f)
{
	for (unsigned i = 0; f->table && i < f->ntables; i++) {
		read_table(f, f->tables[i], 4);
		read_table(f, f->tables[i], 8);
	}
}

static void check_targets(struct flow *f)
{
	for (uint64_t w = 0; w <= f->len >> 6; w++) {
		uint64_t wrong = f->targets[w] & ~f->bounds[w];

		for (; wrong; wrong &= wrong - 1)
			note_bad(f, w << 6 | (unsigned)__builtin_ctzll(wrong));
	}
}

static bool near_bad(const struct flow *f, uint64_t vaddr)
{
	uint64_t b = (vaddr - f->s->start) >> BLOCK_SHIFT;
	uint64_t last = (f->len - 1) >> BLOCK_SHIFT;
	uint64_t from = b < BAD_BLOCKS ? 0 : b - BAD_BLOCKS;
	uint64_t to = last - b < BAD_BLOCKS ? last : b + BAD_BLOCKS;

	MUST(b <= last);
	for (b = from; b <= to; b++)
		if (f->bad_block[b])
			return true;
	return false;
}

/* In a gap: may the function around vaddr have a jump through a table? */
static bool near_jump(const struct flow *f, uint64_t vaddr)
{
	uint64_t site = vaddr - f->s->start, i;

	for (i = site; i > 0 && site - i < TABLE_REACH && !get_bit(f->calls, i); i--)
		if (get_bit(f->jumps, i - 1))
			return true;
	for (i = site + 1; i < f->len && i - site < TABLE_REACH && !get_bit(f->calls, i); i++)
		if (get_bit(f->jumps, i))
			return true;
	return false;
}

static void judge(struct flow *f, struct cand *c)
{
	bool gap = f->s->kind == SPAN_GAP;

	if (gap ? near_bad(f, c->vaddr) : f->bad) {
		bool insn = c->state == CAND_SITE || c->state == CAND_DOUBT;

		c->state = insn && !gap ? CAND_DOUBT : CAND_UNKNOWN;
		return;
	}
	if (gap)
		c->closed = !near_jump(f, c->vaddr);
	else
		c->closed = !f->table && !f->s->pads && f->s->kind == SPAN_FUNC;
	if (c->state == CAND_SITE)
		scan_short(f->v, c, f->s->start, f->s->end);
}

static bool make_room(struct flow *f)
{
	size_t words = (f->len >> 6) + 1;
	bool gap = f->s->kind == SPAN_GAP;

	f->bounds = calloc(words, sizeof(uint64_t));
	f->targets = calloc(words, sizeof(uint64_t));
	f->calls = gap ? calloc(words, sizeof(uint64_t)) : NULL;
	f->jumps = gap ? calloc(words, sizeof(uint64_t)) : NULL;
	f->bad_block = calloc(1, (f->len >> BLOCK_SHIFT) + 1);
	return f->bounds && f->targets && f->bad_block && (!gap || (f->calls && f->jumps));
}

static void drop_room(struct flow *f)
{
	free(f->bounds);
	free(f->targets);
	free(f->calls);
	free(f->jumps);
	free(f->bad_block);
}

int flow_span(const struct elf_view *v, const struct span *s, struct cands *cs, unsigned first,
	      unsigned last)
{
	struct flow f = { .v = v, .s = s, .len = s->end - s->start, .cand = cs->at + first,
			  .n = last - first };
	int err = -ENOMEM;

	MUST(first < last && last <= cs->n && cs->at[first].vaddr >= s->start &&
	     cs->at[last - 1].vaddr < s->end);
	f.p = elf_at(v, s->start, f.len);
	if (!f.p || f.len > SPAN_MAX)
		return 0;		/* they stay unknown */
	if (make_room(&f)) {
		decode(&f);
		take_padding(&f);
		check_targets(&f);
		read_tables(&f);
		for (unsigned i = 0; i < f.n; i++)
			judge(&f, &f.cand[i]);
		err = 0;
	}
	drop_room(&f);
	return err;
}
