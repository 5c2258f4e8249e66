/*
 * The patch planner: given an ELF file, every system-call instruction in it
 * and how to patch it.
 *
 * A whole libc has 1.4 MB of code and must be planned in a few milliseconds, so
 * it is not all decoded.  A fast scan (plan_scan.c) finds the byte pairs that
 * can be system calls; for each, the enclosing function is looked up
 * (plan_fde.c, plan_func.c) and decoded exactly (plan_flow.c); a second scan
 * finds branches towards the sites from anywhere; then each site gets a window
 * (plan_window.c).
 *
 * The rule everywhere is: when in doubt, leave it.  A site that is not patched
 * is still caught by the net and only slow; a site that is patched wrongly is a
 * crash of somebody's server.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/plan/plan_parts.h"

_Static_assert(NEAR_BEFORE + NEAR_AFTER <= SITE_WINDOW_MAX, "a window lies in what was looked at");

struct plan *plan_new(unsigned n)
{
	struct plan *p = calloc(1, sizeof(*p) + n * sizeof(p->sites[0]));

	if (p)
		p->refs = 1;
	return p;
}

void plan_ref(struct plan *p)
{
	unsigned had = __atomic_fetch_add(&p->refs, 1, __ATOMIC_RELAXED);

	MUST(had);
}

void plan_free(struct plan *p)
{
	unsigned left;

	if (!p)
		return;
	/* Whoever drops the last one must see all that others did before theirs. */
	left = BOTH_BY(plan_refs, sub_fetch, &p->refs, 1);
	MUST(left != UINT_MAX);
	if (!left)
		free(p);
}

static bool site_fits(const struct plan_site *s, uint64_t file_size)
{
	if (s->kind > SITE_INSN || s->offset < s->before || s->offset >= file_size ||
	    file_size - s->offset < (uint64_t)SITE_BYTES + s->after ||
	    s->flags & ~(SITE_SLOW | SITE_END_LOST | SITE_UNKNOWN))
		return false;
	if (!site_is_patched(s))
		return !s->before && !s->after;
	return s->before <= NEAR_BEFORE && s->after <= NEAR_AFTER - SITE_BYTES &&
	       site_window(s) >= SITE_JUMP && site_window(s) <= SITE_WINDOW_MAX &&
	       (s->kind != SITE_BEFORE || s->before >= SITE_JUMP);
}

bool plan_fits(const struct plan *p, uint64_t file_size)
{
	if (p->n > PLAN_SITES_MAX || p->build_id_len > PLAN_BUILD_ID_MAX)
		return false;
	for (unsigned i = 0; i < p->n; i++)
		if (!site_fits(&p->sites[i], file_size) ||
		    (i && p->sites[i].vaddr <= p->sites[i - 1].vaddr))
			return false;
	return true;
}

/*
 * Damaged unwind tables may claim the same code for many functions; decoding
 * stops after a few times the code's size.
 */
static uint64_t decode_budget(const struct elf_view *v)
{
	uint64_t sum = (uint64_t)1 << 20;

	for (unsigned i = 0; i < v->nload; i++)
		if (v->load[i].exec)
			sum += 4 * v->load[i].len;
	return sum;
}

static int explain(const struct elf_view *v, struct cands *cs)
{
	uint64_t budget = decode_budget(v);
	struct funcs *f;
	int err = funcs_open(v, &f);

	if (err)
		return err;
	for (unsigned i = 0, last; !err && i < cs->n; i = last) {
		struct span s;

		last = i + 1;
		if (!funcs_find(f, cs->at[i].vaddr, &s) || s.end - s.start > budget)
			continue;
		budget -= s.end - s.start;
		last = cands_from(cs, s.end);
		MUST(last > i);
		err = flow_span(v, &s, cs, i, last);
	}
	funcs_close(f);
	return err;
}

static void reference_note(struct cands *cs, uint64_t target)
{
	unsigned i = cands_from(cs, target);

	if (i < cs->n && cs->at[i].vaddr == target && cs->at[i].state == CAND_INSIDE)
		cs->at[i].state = CAND_UNKNOWN;
}

/* lea disp32(%rip), call rel32 or jmp rel32, whose displacement is at p. */
static bool forms_address(const uint8_t *p)
{
	return (p[-2] == 0x8d && (p[-1] & 0xc7) == 0x05) || (p[-1] & 0xfe) == 0xe8;
}

/*
 * A call may be hidden inside another instruction by somebody who means to jump
 * there; then its address is formed somewhere, relative to the code: nothing
 * else points at such bytes.
 */
static void find_references(const struct elf_view *v, struct cands *cs)
{
	for (unsigned k = 0; k < v->nload && cs->n; k++) {
		const struct elf_load *l = &v->load[k];
		const uint8_t *p = v->bytes + l->off;
		uint64_t low = cs->at[0].vaddr, high = cs->at[cs->n - 1].vaddr;
		int32_t rel;

		for (uint64_t i = 2; l->exec && i + sizeof(rel) <= l->len; i++) {
			uint64_t target;

			if (!forms_address(p + i))
				continue;
			memcpy(&rel, p + i, sizeof(rel));
			target = l->vaddr + i + sizeof(rel) + (uint64_t)(int64_t)rel;
			if (target - low <= high - low)
				reference_note(cs, target);
		}
	}
}

/* Kept by address, so that its page can be watched. */
static void unknown_note(struct plan *p, const struct cand *c)
{
	p->unknown_pairs++;
	p->sites[p->n++] = (struct plan_site){ .offset = c->off, .vaddr = c->vaddr, .nr = -1,
					       .kind = c->pair, .flags = SITE_UNKNOWN };
}

static int build(const struct elf_view *v, const struct cands *cs, struct plan **out)
{
	struct plan *p = plan_new(cs->n);
	struct go_table go;

	if (!p)
		return -ENOMEM;
	p->vsyscall = scan_vsyscall(v);
	p->go = cs->n && go_table_open(v, &go);
	p->build_id_len = v->build_id_len;
	memcpy(p->build_id, v->build_id, sizeof(p->build_id));
	for (unsigned i = 0; i < cs->n; i++) {
		const struct cand *c = &cs->at[i];

		MUST(p->n <= i);
		if (c->pair == SITE_INSN ? c->state != CAND_SITE : c->state == CAND_INSIDE)
			continue;
		if (c->state == CAND_UNKNOWN)
			unknown_note(p, c);
		else
			window_choose(c, &p->sites[p->n++]);
	}
	MUST(plan_fits(p, v->size) && p->unknown_pairs <= p->n);
	*out = p;
	return 0;
}

static int plan_view(const struct elf_view *v, struct plan **out)
{
	struct cands cs = { 0 };
	int err = scan_pairs(v, &cs);

	if (!err)
		err = explain(v, &cs);
	if (!err)
		err = scan_far(v, &cs);
	if (!err)
		find_references(v, &cs);
	if (!err)
		err = build(v, &cs, out);
	free(cs.at);
	return err;
}

int plan_image(const void *bytes, size_t size, struct plan **out)
{
	struct elf_view v;
	int err = elf_open_image(&v, bytes, size);

	return err ? err : plan_view(&v, out);
}

int plan_file(int fd, struct plan **out)
{
	struct elf_view v;
	int err = elf_open_file(&v, fd, ELF_WHOLE);

	if (err)
		return err;
	err = plan_view(&v, out);
	elf_close(&v);
	return err;
}
