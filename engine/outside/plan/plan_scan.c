/*
 * Fast looks at every byte of a file's code, sixteen at a time: where the byte
 * pairs of system calls are, and what looks like a branch towards one of them.
 *
 * These look at bytes, not at instructions, so they see more than there is.  A
 * pair that is no instruction is sorted out by decoding; a branch that is none
 * only costs a window, which is the safe side.
 */
#include <emmintrin.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "engine/core/must.h"
#include "engine/outside/plan/plan_parts.h"

#define LINE_SHIFT	6	/* the watch has one bit for 64 bytes of code */

/* The kinds of pair, by first and second byte. */
static const struct pair {
	uint8_t first, second, kind;
} pairs[] = {
	{ 0x0f, 0x05, SITE_TRAP },
	{ 0x0f, 0x34, SITE_SYSENTER },
	{ 0xcd, 0x80, SITE_INT80 },
	{ 0x0f, 0x31, SITE_INSN },
	{ 0x0f, 0x01, SITE_INSN },	/* rdtscp, among others */
	{ 0x0f, 0xc7, SITE_INSN },	/* rdrand and rdseed of a register */
};

static unsigned match16(const uint8_t *p, uint8_t first, uint8_t second)
{
	__m128i a = _mm_loadu_si128((const __m128i *)p);
	__m128i b = _mm_loadu_si128((const __m128i *)(p + 1));

	a = _mm_cmpeq_epi8(a, _mm_set1_epi8((char)first));
	b = _mm_cmpeq_epi8(b, _mm_set1_epi8((char)second));
	return (unsigned)_mm_movemask_epi8(_mm_and_si128(a, b));
}

static int add_cand(struct cands *cs, uint64_t vaddr, uint64_t off, uint8_t kind)
{
	struct cand *c;

	if (cs->n == cs->room) {
		unsigned room = cs->room ? cs->room * 2 : 64;

		if (cs->n >= PLAN_SITES_MAX)
			return -E2BIG;
		c = realloc(cs->at, room * sizeof(*c));
		if (!c)
			return -ENOMEM;
		cs->at = c;
		cs->room = room;
	}
	c = &cs->at[cs->n++];
	MUST(cs->n == 1 || c[-1].vaddr < vaddr);	/* they are searched by halves */
	memset(c, 0, sizeof(*c));
	c->vaddr = vaddr;
	c->off = off;
	c->pair = kind;
	return 0;
}

/* Two of the pairs begin other instructions, too: the third byte tells. */
static bool third_fits(const uint8_t *p, uint64_t left)
{
	if (p[0] != 0x0f || (p[1] != 0x01 && p[1] != 0xc7))
		return true;
	return left > 2 && (p[1] == 0x01 ? p[2] == 0xf9 : p[2] >= 0xf0);
}

static int check_pair(const struct elf_load *l, const uint8_t *p, uint64_t i, struct cands *cs)
{
	for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++)
		if (p[i] == pairs[k].first && p[i + 1] == pairs[k].second &&
		    third_fits(p + i, l->len - i))
			return add_cand(cs, l->vaddr + i, l->off + i, pairs[k].kind);
	return 0;
}

static int scan_load(const struct elf_view *v, const struct elf_load *l, struct cands *cs)
{
	const uint8_t *p = v->bytes + l->off;
	uint64_t i = 0;
	int err = 0;

	for (; !err && i + 17 <= l->len; i += 16) {
		unsigned m = match16(p + i, 0x0f, 0x05) | match16(p + i, 0x0f, 0x34) |
			     match16(p + i, 0xcd, 0x80) | match16(p + i, 0x0f, 0x31) |
			     match16(p + i, 0x0f, 0x01) | match16(p + i, 0x0f, 0xc7);

		for (; m && !err; m &= m - 1)
			err = check_pair(l, p, i + (unsigned)__builtin_ctz(m), cs);
	}
	for (; !err && i + 2 <= l->len; i++)
		err = check_pair(l, p, i, cs);
	return err;
}

int scan_pairs(const struct elf_view *v, struct cands *cs)
{
	int err = 0;

	for (unsigned i = 0; !err && i < v->nload; i++)
		if (v->load[i].exec)
			err = scan_load(v, &v->load[i], cs);
	return err;
}

/*
 * An address of the old gettimeofday, time or getcpu, given its four low bytes.
 * Those alone occur by chance in one file of two, so they must be used as an
 * address can be: as eight bytes, or as an operand that is extended to eight by
 * mov, push, or a call or jump through it.
 */
static bool vsyscall_at(const uint8_t *start, uint64_t len, uint64_t at)
{
	const uint8_t *p = start + at;
	uint64_t before = at, left = len - at;
	uint32_t x = get32(p);

	if (x != 0xff600000 && x != 0xff600400 && x != 0xff600800)
		return false;
	return (left >= 8 && get32(p + 4) == 0xffffffff) ||
	       (before >= 3 && (p[-3] & 0xf8) == 0x48 && p[-2] == 0xc7 && (p[-1] & 0xf8) == 0xc0) ||
	       (before >= 3 && p[-3] == 0xff && (p[-2] & 0xcf) == 0x04 && p[-1] == 0x25) ||
	       (before >= 1 && p[-1] == 0x68);
}

static bool has_vsyscall(const uint8_t *p, uint64_t len)
{
	uint64_t i = 2;		/* of the byte 60; it has two before it */

	for (; i + 17 <= len; i += 16)
		for (unsigned m = match16(p + i, 0x60, 0xff); m; m &= m - 1)
			if (vsyscall_at(p, len, i + (unsigned)__builtin_ctz(m) - 2))
				return true;
	for (; i + 2 <= len; i++)
		if (vsyscall_at(p, len, i - 2))
			return true;
	return false;
}

bool scan_vsyscall(const struct elf_view *v)
{
	for (unsigned i = 0; i < v->nload; i++)
		if (has_vsyscall(v->bytes + v->load[i].off, v->load[i].len))
			return true;
	return false;
}

unsigned cands_from(const struct cands *cs, uint64_t vaddr)
{
	unsigned lo = 0, hi = cs->n;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;

		if (cs->at[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t near_from(uint64_t target)
{
	return target < NEAR_AFTER ? 0 : target - (NEAR_AFTER - 1);
}

void cands_mark(struct cands *cs, uint64_t target)
{
	for (unsigned i = cands_from(cs, near_from(target)); i < cs->n; i++) {
		uint64_t bit = near_bit(&cs->at[i], target);

		if (!bit)
			return;
		cs->at[i].exact |= bit;
	}
}

static void mark_maybe(struct cands *cs, uint64_t target)
{
	for (unsigned i = cands_from(cs, near_from(target)); i < cs->n; i++) {
		uint64_t bit = near_bit(&cs->at[i], target);

		if (!bit)
			return;
		cs->at[i].maybe |= bit;
	}
}

/* One bit per line of code that has a candidate near: most targets fail here. */
struct watch {
	uint64_t base, len;
	uint8_t *bits;
};

static int watch_open(struct watch *w, const struct elf_view *v, const struct cands *cs)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	for (unsigned i = 0; i < v->nload; i++) {
		if (!v->load[i].exec)
			continue;
		lo = lo < v->load[i].vaddr ? lo : v->load[i].vaddr;
		hi = v->load[i].vaddr + v->load[i].len;
	}
	if (hi - lo > (uint64_t)1 << 36)
		return -E2BIG;
	w->base = lo;
	w->len = hi - lo;
	w->bits = calloc(1, (w->len >> (LINE_SHIFT + 3)) + 1);
	if (!w->bits)
		return -ENOMEM;
	for (unsigned i = 0; i < cs->n; i++) {
		uint64_t near = cs->at[i].vaddr - lo;
		uint64_t from = near < NEAR_BEFORE ? 0 : near - NEAR_BEFORE;

		for (uint64_t a = from >> LINE_SHIFT; a <= (near + NEAR_AFTER) >> LINE_SHIFT; a++)
			if (a <= w->len >> LINE_SHIFT)
				w->bits[a >> 3] |= (uint8_t)(1 << (a & 7));
	}
	return 0;
}

static inline void watch_target(const struct watch *w, struct cands *cs, uint64_t target)
{
	uint64_t rel = target - w->base, line = rel >> LINE_SHIFT;

	if (rel < w->len && w->bits[line >> 3] & 1 << (line & 7))
		mark_maybe(cs, target);
}

/*
 * One bit per byte that could begin the last opcode byte of a branch with a
 * 32-bit displacement: e8, e9, or 80 to 8f after 0f.
 */
static unsigned branches16(const uint8_t *p)
{
	__m128i a = _mm_loadu_si128((const __m128i *)p);
	__m128i before = _mm_loadu_si128((const __m128i *)(p - 1));
	__m128i near = _mm_cmpeq_epi8(_mm_and_si128(a, _mm_set1_epi8((char)0xfe)),
				      _mm_set1_epi8((char)0xe8));
	__m128i jcc = _mm_cmpeq_epi8(_mm_and_si128(a, _mm_set1_epi8((char)0xf0)),
				     _mm_set1_epi8((char)0x80));

	jcc = _mm_and_si128(jcc, _mm_cmpeq_epi8(before, _mm_set1_epi8(0x0f)));
	return (unsigned)_mm_movemask_epi8(_mm_or_si128(near, jcc));
}

static bool is_branch(const uint8_t *p, uint64_t i)
{
	return (p[i] & 0xfe) == 0xe8 || (i && p[i - 1] == 0x0f && (p[i] & 0xf0) == 0x80);
}

static void far_target(const uint8_t *p, uint64_t vaddr, uint64_t i, const struct watch *w,
		       struct cands *cs)
{
	watch_target(w, cs, vaddr + i + 5 + (uint64_t)(int64_t)(int32_t)get32(p + i + 1));
}

static void far_load(const uint8_t *p, uint64_t len, uint64_t vaddr, const struct watch *w,
		     struct cands *cs)
{
	uint64_t i = 0;

	for (; i < 1 && i + 5 <= len; i++)
		if (is_branch(p, i))
			far_target(p, vaddr, i, w, cs);
	for (; i + 20 <= len; i += 16)
		for (unsigned m = branches16(p + i); m; m &= m - 1)
			far_target(p, vaddr, i + (unsigned)__builtin_ctz(m), w, cs);
	for (; i + 5 <= len; i++)
		if (is_branch(p, i))
			far_target(p, vaddr, i, w, cs);
}

int scan_far(const struct elf_view *v, struct cands *cs)
{
	struct watch w;
	int err;

	if (!cs->n)
		return 0;
	err = watch_open(&w, v, cs);
	if (err)
		return err;
	for (unsigned i = 0; i < v->nload; i++)
		if (v->load[i].exec)
			far_load(v->bytes + v->load[i].off, v->load[i].len, v->load[i].vaddr, &w,
				 cs);
	free(w.bits);
	return 0;
}

/* jcc rel8, loop and jrcxz, jmp rel8. */
static bool is_short_branch(uint8_t op)
{
	return (op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0 || op == 0xeb;
}

void scan_short(const struct elf_view *v, struct cand *c, uint64_t start, uint64_t end)
{
	const struct elf_load *l = elf_exec(v, c->vaddr);
	uint64_t rel, from, to;
	const uint8_t *p;

	if (!l)
		return;
	p = v->bytes + l->off;
	rel = c->vaddr - l->vaddr;
	MUST(rel < l->len);
	from = rel < NEAR_BEFORE + 130 ? 0 : rel - NEAR_BEFORE - 130;
	to = l->len - rel < NEAR_AFTER + 130 ? l->len : rel + NEAR_AFTER + 130;
	for (uint64_t i = from; i + 2 <= to; i++) {
		uint64_t at = l->vaddr + i;

		if ((at < start || at >= end) && is_short_branch(p[i]))
			c->maybe |= near_bit(c, at + 2 + (uint64_t)(int64_t)(int8_t)p[i + 1]);
	}
}
