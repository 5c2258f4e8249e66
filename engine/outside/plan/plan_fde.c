/*
 * Functions by the unwind tables: .eh_frame_hdr has a sorted table of their
 * starts, and each row leads to an FDE with the length.  Every compiler for
 * x86-64 writes these (musl and Go leave them out), stripped files keep them,
 * and a search costs no more than its steps: nothing is read in advance.
 *
 * An FDE is not quite a function.  gcc moves cold parts of a function away and
 * gives them an FDE of their own, so a part that does not begin where functions
 * begin is called SPAN_PART.  An FDE with a language-specific area has landing
 * pads, which the unwinder enters without any branch.
 */
#include <string.h>
#include "engine/core/must.h"
#include "engine/outside/plan/plan_parts.h"

#define HDR_BYTES	4	/* version and three encodings */
#define ROW_BYTES	8
#define ENC_TABLE	0x3b	/* relative to the header, signed 32 bits */
#define ENC_OMIT	0xff
#define ENC_PCREL	0x10
#define FUNC_ALIGN	16

/* A reader that stops at the end of what it was given. */
struct bytes {
	const uint8_t *p;
	uint64_t left, vaddr;
	bool bad;
};

static uint64_t take(struct bytes *b, unsigned n)
{
	uint64_t x = 0;

	if (b->left < n) {
		b->bad = true;
		return 0;
	}
	memcpy(&x, b->p, n);
	b->p += n;
	b->vaddr += n;
	b->left -= n;
	return x;
}

static uint64_t take_uleb(struct bytes *b)
{
	uint64_t x = 0, byte;

	for (unsigned shift = 0; shift < 63; shift += 7) {
		byte = take(b, 1);
		x |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return x;
	}
	b->bad = true;
	return 0;
}

/* The encodings that occur: 4 or 8 bytes, absolute or relative to the field. */
static uint64_t take_pointer(struct bytes *b, uint8_t enc)
{
	uint64_t at = b->vaddr, x;

	switch (enc & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c:
		x = take(b, 8);
		break;
	case 0x03:
		x = take(b, 4);
		break;
	case 0x0b:
		x = (uint64_t)(int64_t)(int32_t)take(b, 4);
		break;
	default:
		b->bad = true;
		return 0;
	}
	if (enc & 0x60)
		b->bad = true;
	return enc & ENC_PCREL ? x + at : x;
}

/* Opens the length-prefixed record at vaddr. */
static struct bytes record(const struct elf_view *v, uint64_t vaddr)
{
	struct bytes b = { .bad = true };
	const uint8_t *p = elf_at(v, vaddr, 4);
	uint64_t len = p ? get32(p) : 0;

	if (len < 8 || len >= 0xfffffff0 || !elf_at(v, vaddr, 4 + len))
		return b;
	return (struct bytes){ p + 4, len, vaddr + 4, false };
}

struct cie {
	uint8_t pc_enc, lsda_enc;
	bool augmented;
};

static void take_augmentation(struct bytes *b, const char *s, struct cie *c)
{
	for (; *s && !b->bad; s++) {
		uint8_t enc;

		switch (*s) {
		case 'R':
			c->pc_enc = (uint8_t)take(b, 1);
			break;
		case 'L':
			c->lsda_enc = (uint8_t)take(b, 1);
			break;
		case 'P':
			enc = (uint8_t)take(b, 1);
			take_pointer(b, enc & 0x1f);
			break;
		case 'S':
		case 'B':
			break;
		default:
			b->bad = true;
		}
	}
}

static bool read_cie(const struct elf_view *v, uint64_t vaddr, struct cie *c)
{
	struct bytes b = record(v, vaddr);
	char aug[8] = "";
	unsigned n = 0;
	uint8_t version;

	*c = (struct cie){ 0, ENC_OMIT, false };
	if (take(&b, 4) || b.bad)
		return false;
	version = (uint8_t)take(&b, 1);
	while (n < sizeof(aug) - 1 && (aug[n] = (char)take(&b, 1)))
		n++;
	take_uleb(&b);			/* code alignment */
	take_uleb(&b);			/* data alignment: only its length matters */
	if (version == 1)
		take(&b, 1);
	else
		take_uleb(&b);
	if (b.bad || (version != 1 && version != 3))
		return false;
	if (aug[0] != 'z')
		return !aug[0];
	c->augmented = true;
	take_uleb(&b);
	take_augmentation(&b, aug + 1, c);
	return !b.bad;
}

static bool read_fde(const struct elf_view *v, uint64_t vaddr, struct span *out)
{
	struct bytes b = record(v, vaddr);
	uint64_t cie_at = b.vaddr, len, here;
	struct cie c;

	cie_at -= take(&b, 4);
	if (b.bad || !read_cie(v, cie_at, &c))
		return false;
	out->start = take_pointer(&b, c.pc_enc);
	len = take_pointer(&b, c.pc_enc & 0x0f);
	out->end = out->start + len;
	out->pads = false;
	if (c.augmented && take_uleb(&b) && c.lsda_enc != ENC_OMIT) {
		here = c.lsda_enc & ENC_PCREL ? b.vaddr : 0;
		out->pads = take_pointer(&b, c.lsda_enc & 0x1f) != here;
	}
	return !b.bad && len && out->end > out->start;
}

void fde_open(struct fde_table *t, const struct elf_view *v)
{
	struct bytes b = { .vaddr = v->eh_frame_hdr, .left = v->eh_frame_hdr_len };
	uint8_t version, frame_enc, count_enc, table_enc;
	uint64_t n;

	memset(t, 0, sizeof(*t));
	t->v = v;
	t->base = v->eh_frame_hdr;
	b.p = v->eh_frame_hdr_len >= HDR_BYTES ? elf_at(v, b.vaddr, b.left) : NULL;
	if (!b.p)
		return;
	version = (uint8_t)take(&b, 1);
	frame_enc = (uint8_t)take(&b, 1);
	count_enc = (uint8_t)take(&b, 1);
	table_enc = (uint8_t)take(&b, 1);
	if (version != 1 || table_enc != ENC_TABLE || count_enc == ENC_OMIT)
		return;
	if (frame_enc != ENC_OMIT)
		take_pointer(&b, frame_enc & 0x1f);
	n = take_pointer(&b, count_enc & 0x0f);
	if (b.bad || n > b.left / ROW_BYTES)
		return;
	t->rows = b.p;
	t->n = n;
}

static uint64_t row_start(const struct fde_table *t, uint64_t i)
{
	return t->base + (uint64_t)(int64_t)(int32_t)get32(t->rows + i * ROW_BYTES);
}

static uint64_t row_fde(const struct fde_table *t, uint64_t i)
{
	return t->base + (uint64_t)(int64_t)(int32_t)get32(t->rows + i * ROW_BYTES + 4);
}

/* Rows that begin at or before vaddr. */
static uint64_t rows_upto(const struct fde_table *t, uint64_t vaddr)
{
	uint64_t lo = 0, hi = t->n;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (row_start(t, mid) <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool fde_find(const struct fde_table *t, uint64_t vaddr, struct span *out, uint64_t *lo,
	      uint64_t *hi)
{
	uint64_t i = t->rows ? rows_upto(t, vaddr) : 0;
	uint64_t next = i < t->n ? row_start(t, i) : UINT64_MAX;

	/* However the table is sorted. */
	MUST((i == t->n || next > vaddr) && (!i || row_start(t, i - 1) <= vaddr));
	*hi = next < *hi ? next : *hi;
	if (!i)
		return false;
	if (!read_fde(t->v, row_fde(t, i - 1), out) || out->start != row_start(t, i - 1)) {
		*lo = row_start(t, i - 1) > *lo ? row_start(t, i - 1) : *lo;
		return false;
	}
	if (vaddr >= out->end) {
		*lo = out->end > *lo ? out->end : *lo;
		return false;
	}
	MUST(out->start <= vaddr && vaddr < out->end);
	out->next = next > out->end ? next : out->end;
	out->kind = out->start % FUNC_ALIGN ? SPAN_PART : SPAN_FUNC;
	return true;
}
