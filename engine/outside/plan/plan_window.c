/*
 * The choice of a window, and why it is safe.
 *
 * Patching writes five bytes of jump at the window's start, and nothing else:
 * the window's other bytes stay.  The board runs the window's instructions in
 * their order around the call and goes to the window's end.  So a program runs
 * as before, provided that nobody enters at an instruction that begins under
 * the jump, past its first byte.  Entering at the first byte is what we want;
 * entering behind the jump meets the program's own bytes.
 *
 * Who might enter there?
 *  - Direct branches of the same function: all seen, by exact decoding.
 *  - Direct branches from elsewhere (.cold parts, tail jumps): with 32-bit
 *    displacements, from anywhere, and with 8-bit ones from the neighbourhood,
 *    seen by a scan that takes any byte for an opcode.
 *  - Returns from calls: no, a call is never moved, so a place behind a call is
 *    a window's start at most.
 *  - Indirect jumps (jump tables, computed goto), landing pads, and for a part
 *    of a function the other parts' tables: not all seen.  A function with none
 *    of them is `closed`.
 *
 * In a function that is not closed, only these are taken:
 *  - no instruction begins under the jump (`mov $nr,%eax; syscall`): there is
 *    nothing to enter;
 *  - or only the site's end does, and there the result is compared with an
 *    error number or zero.  To get there but by the call, a compiler would have
 *    to put a result into rax first and then jump through a table.  The rows of
 *    tables that can be found are checked all the same.
 *
 * Among the safe windows the one with the lowest cost is taken.  Moved memory
 * accesses cost, because a fault would show an address in the board; so does
 * overwriting the site's end, because code may return there by address (see
 * SITE_END_LOST); leaving a branch to the bare syscall costs most.
 *
 * rt_sigreturn is left to the net: debuggers and unwinders know a signal frame
 * by these very bytes.
 */
#include <sys/syscall.h>
#include "engine/core/must.h"
#include "engine/outside/plan/plan_parts.h"

enum cost {
	COST_INSN	= 1,
	COST_BOUNDARY	= 1,
	COST_SYSCALL	= 2,
	COST_MEMORY	= 4,
	COST_END_LOST	= 8,
	COST_SLOW	= 32,
	COST_NEVER	= 1000000,
};

struct window {
	const struct cand *c;
	unsigned nbefore, nafter;	/* instructions */
	uint64_t start, end;
	unsigned cost;
	uint8_t flags;
};

static bool hit(const struct cand *c, uint64_t at, bool exact_only)
{
	return (exact_only ? c->exact : c->exact | c->maybe) & near_bit(c, at);
}

/* May an instruction begin at `at` under the jump? */
static bool boundary_safe(const struct window *w, uint64_t at)
{
	const struct cand *c = w->c;

	if (hit(c, at, false))
		return false;
	return c->closed || (at == c->vaddr + SITE_BYTES && c->nafter &&
			     c->after[0].flags & INSN_CHECKS_RAX);
}

/* Every instruction boundary under the jump; counts them, or COST_NEVER. */
static unsigned cost_boundaries(const struct window *w)
{
	uint64_t jump_end = w->start + SITE_JUMP, site = w->c->vaddr;
	unsigned cost = 0;

	for (unsigned i = 0; i + 1 < w->nbefore; i++)
		if (w->c->before[i].at < jump_end)
			cost += boundary_safe(w, w->c->before[i].at) ? COST_BOUNDARY : COST_NEVER;
	if (w->nbefore && site < jump_end)
		cost += boundary_safe(w, site) ? COST_BOUNDARY : COST_NEVER;
	for (unsigned i = 0; i < w->nafter; i++)
		if (w->c->after[i].at < jump_end)
			cost += boundary_safe(w, w->c->after[i].at) ? COST_BOUNDARY : COST_NEVER;
	/* A branch into the middle of an instruction: odd, so leave it alone. */
	for (uint64_t at = w->start + 1; at < jump_end; at++)
		if (hit(w->c, at, true))
			cost += COST_NEVER;
	return cost;
}

static unsigned cost_moved(const struct insn *i, unsigned n)
{
	unsigned cost = 0;

	for (; n--; i++)
		cost += COST_INSN + (i->flags & INSN_MEMORY ? COST_MEMORY : 0);
	return cost;
}

static bool entered_behind_jump(const struct window *w)
{
	for (uint64_t at = w->start + SITE_JUMP; at <= w->c->vaddr; at++)
		if (hit(w->c, at, false))
			return true;
	return false;
}

static void weigh(struct window *w)
{
	uint64_t site = w->c->vaddr, jump_end = w->start + SITE_JUMP;

	w->flags = 0;
	w->cost = cost_boundaries(w) + cost_moved(w->c->before, w->nbefore) +
		  cost_moved(w->c->after, w->nafter);
	if (jump_end > site)
		w->cost += COST_SYSCALL;
	if (jump_end > site + SITE_BYTES) {
		w->cost += COST_END_LOST;
		w->flags |= SITE_END_LOST;
	}
	if (entered_behind_jump(w)) {
		w->cost += COST_SLOW;
		w->flags |= SITE_SLOW;
	}
	if (w->end < jump_end || site - w->start > NEAR_BEFORE ||
	    w->end - site > NEAR_AFTER || w->end - w->start > SITE_WINDOW_MAX)
		w->cost += COST_NEVER;
}

static void keep_cheaper(struct window *best, struct window *w)
{
	weigh(w);
	if (w->cost < best->cost)
		*best = *w;
}

/* Longer and longer windows to the right; padding counts after the flow ended. */
static void try_after(struct window *best, struct window w)
{
	bool ended = false;

	w.nafter = 0;
	w.end = w.c->vaddr + SITE_BYTES;
	keep_cheaper(best, &w);
	for (unsigned i = 0; i < w.c->nafter; i++) {
		const struct insn *in = &w.c->after[i];

		MUST(in->at == w.end);		/* a board runs them as they follow each other */
		if (ended ? !(in->flags & INSN_PAD)
			  : !(in->flags & (INSN_MOVES | INSN_RET | INSN_JUMP)))
			return;
		ended |= (in->flags & INSN_ENDS) != 0;
		w.nafter++;
		w.end = in->at + in->len;
		keep_cheaper(best, &w);
	}
}

static struct window best_window(const struct cand *c)
{
	struct window best = { .cost = COST_NEVER }, w = { .c = c, .start = c->vaddr };

	MUST(c->nbefore <= NEAR_INSNS && c->nafter <= NEAR_INSNS);
	try_after(&best, w);
	for (unsigned i = 0; i < c->nbefore && c->before[i].flags & INSN_MOVES; i++) {
		MUST(c->before[i].at + c->before[i].len == w.start);
		w.nbefore++;
		w.start = c->before[i].at;
		try_after(&best, w);
	}
	return best;
}

/* The call's number, when the straight code before the site says it. */
static int32_t find_nr(const struct cand *c)
{
	uint64_t at = c->vaddr;

	for (unsigned i = 0; i < c->nbefore; i++) {
		const struct insn *in = &c->before[i];

		if (hit(c, at, true) || !(in->flags & INSN_MOVES))
			return -1;
		if (in->flags & INSN_SETS_NR)
			return (int32_t)in->imm;
		if (in->flags & INSN_WRITES_RAX)
			return -1;
		at = in->at;
	}
	return -1;
}

void window_choose(const struct cand *c, struct plan_site *s)
{
	struct window w;

	*s = (struct plan_site){ .offset = c->off, .vaddr = c->vaddr, .nr = -1, .kind = c->pair };
	if (c->pair != SITE_TRAP || c->state != CAND_SITE)
		return;
	s->nr = find_nr(c);
	if (s->nr == SYS_rt_sigreturn)
		return;
	w = best_window(c);
	if (w.cost >= COST_NEVER)
		return;
	MUST(w.start + SITE_JUMP <= w.end && c->vaddr - w.start <= NEAR_BEFORE &&
	     w.end - c->vaddr <= NEAR_AFTER);
	s->kind = w.start + SITE_JUMP <= c->vaddr ? SITE_BEFORE : SITE_AROUND;
	s->flags = w.flags;
	s->before = (uint8_t)(c->vaddr - w.start);
	s->after = (uint8_t)(w.end - c->vaddr - SITE_BYTES);
}
