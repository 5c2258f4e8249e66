/*
 * Which function holds an address: the place from which decoding is exact.
 *
 * In the order of trust: the unwind tables (plan_fde.c), the symbols, Go's own
 * table of functions, and, where all are silent, the gap between what they
 * know, cut to its section.  A gap is still decoded from a sound start (the end
 * of a function, the start of a section, the entry point), but nothing says
 * where its functions begin and end, so plan_flow.c asks more of it.
 *
 * The tables are built when first needed: most files are planned from the
 * unwind tables alone.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "engine/core/must.h"
#include "engine/outside/plan/plan_parts.h"

#define CODE_SECTIONS_MAX	64
#define SYMBOLS_MAX		(8u << 20)
#define FUNC_ALIGN		16

/* A function by its symbol or by Go's table. */
struct known {
	uint64_t start, end;
	bool cold;		/* a part that gcc or clang moved away */
};

struct code_section {
	uint64_t start, end;
};

struct funcs {
	const struct elf_view *v;
	struct fde_table fdes;
	struct known *known;
	unsigned nknown, room;
	bool loaded, has_sections;
	unsigned ncode;
	struct code_section code[CODE_SECTIONS_MAX];
};

static void find_code_sections(struct funcs *f)
{
	struct elf_section s;

	for (unsigned i = 0; elf_section(f->v, i, &s); i++) {
		f->has_sections = true;
		if (!(s.flags & SHF_EXECINSTR) || s.type == SHT_NOBITS ||
		    f->ncode == CODE_SECTIONS_MAX || s.vaddr + s.len < s.vaddr)
			continue;
		f->code[f->ncode++] = (struct code_section){ s.vaddr, s.vaddr + s.len };
	}
}

int funcs_open(const struct elf_view *v, struct funcs **out)
{
	struct funcs *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->v = v;
	fde_open(&f->fdes, v);
	find_code_sections(f);
	*out = f;
	return 0;
}

void funcs_close(struct funcs *f)
{
	free(f->known);
	free(f);
}

static void add_known(struct funcs *f, uint64_t start, uint64_t end, bool cold)
{
	if (f->nknown == f->room) {
		unsigned room = f->room ? f->room * 2 : 1024;
		struct known *k = realloc(f->known, room * sizeof(*k));

		if (!k)
			return;
		f->known = k;
		f->room = room;
	}
	MUST(start < end);
	f->known[f->nknown++] = (struct known){ start, end, cold };
}

/* gcc's and clang's moved parts: f.cold, f.cold.1, f.part.0.cold. */
static bool is_cold(const uint8_t *names, uint64_t len, uint32_t name)
{
	return name < len && memmem(names + name, strnlen((char *)names + name, len - name),
				    ".cold", 5);
}

static void read_symbols(struct funcs *f, const struct elf_section *s)
{
	const uint8_t *syms = elf_section_bytes(f->v, s), *names;
	struct elf_section strings;
	uint64_t n = s->len / sizeof(Elf64_Sym);

	if (!syms || !elf_section(f->v, s->link, &strings))
		return;
	names = elf_section_bytes(f->v, &strings);
	if (!names || n > SYMBOLS_MAX)
		return;
	for (uint64_t i = 0; i < n; i++) {
		Elf64_Sym y;

		memcpy(&y, syms + i * sizeof(y), sizeof(y));
		if (ELF64_ST_TYPE(y.st_info) != STT_FUNC || !y.st_size || !y.st_shndx ||
		    y.st_value + y.st_size < y.st_value || !elf_exec(f->v, y.st_value))
			continue;
		add_known(f, y.st_value, y.st_value + y.st_size,
			  is_cold(names, strings.len, y.st_name));
	}
}

static void read_go_table(struct funcs *f)
{
	struct go_table g;
	uint64_t start, end;

	if (!go_table_open(f->v, &g))
		return;
	for (uint64_t i = 0; go_func(&g, i, &start, &end); i++)
		if (start < end && elf_exec(f->v, start))
			add_known(f, start, end, false);
}

static int by_start(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * Sorts, and joins what overlaps: aliases of a function, and entries inside
 * one.  Joining only makes a function larger, which is the safe side.
 */
static void settle(struct funcs *f)
{
	unsigned n = 0;
	bool sorted = true;

	for (unsigned i = 1; sorted && i < f->nknown; i++)
		sorted = f->known[i - 1].start <= f->known[i].start;
	if (!sorted)
		qsort(f->known, f->nknown, sizeof(*f->known), by_start);
	for (unsigned i = 0; i < f->nknown; i++) {
		struct known *k = &f->known[i], *last = n ? &f->known[n - 1] : NULL;

		MUST(n <= i && (!last || last->start <= k->start));
		if (!last || k->start >= last->end) {
			f->known[n++] = *k;
			continue;
		}
		last->end = k->end > last->end ? k->end : last->end;
		last->cold |= k->cold;
	}
	f->nknown = n;
}

static void load_symbols(struct funcs *f, uint32_t type)
{
	struct elf_section s;

	for (unsigned i = 0; !f->nknown && elf_section(f->v, i, &s); i++)
		if (s.type == type)
			read_symbols(f, &s);
}

static void load_known(struct funcs *f)
{
	if (f->loaded)
		return;
	f->loaded = true;
	load_symbols(f, SHT_SYMTAB);
	if (!f->nknown)
		read_go_table(f);
	load_symbols(f, SHT_DYNSYM);
	settle(f);
}

/* Like fde_find(), among the known functions. */
static const struct known *find_known(const struct funcs *f, uint64_t vaddr, uint64_t *lo,
				      uint64_t *hi)
{
	unsigned a = 0, b = f->nknown;
	const struct known *k;

	while (a < b) {
		unsigned mid = a + (b - a) / 2;

		if (f->known[mid].start <= vaddr)
			a = mid + 1;
		else
			b = mid;
	}
	if (a < f->nknown && f->known[a].start < *hi)
		*hi = f->known[a].start;
	if (!a)
		return NULL;
	k = &f->known[a - 1];
	MUST(k->start <= vaddr);
	if (vaddr < k->end)
		return k;
	*lo = k->end > *lo ? k->end : *lo;
	return NULL;
}

/* Cuts [*lo, *hi) to the code around vaddr; false: these bytes are no code. */
static bool cut_to_section(const struct funcs *f, uint64_t vaddr, uint64_t *lo, uint64_t *hi)
{
	const struct elf_load *l = elf_exec(f->v, vaddr);

	if (!l)
		return false;
	*lo = l->vaddr > *lo ? l->vaddr : *lo;
	*hi = l->vaddr + l->len < *hi ? l->vaddr + l->len : *hi;
	if (!f->has_sections) {
		if (*lo == l->vaddr && f->v->entry > *lo && f->v->entry <= vaddr)
			*lo = f->v->entry;
		return true;
	}
	for (unsigned i = 0; i < f->ncode; i++) {
		const struct code_section *c = &f->code[i];

		if (vaddr < c->start || vaddr >= c->end)
			continue;
		*lo = c->start > *lo ? c->start : *lo;
		*hi = c->end < *hi ? c->end : *hi;
		return true;
	}
	return false;
}

/* An FDE that begins where functions do not is a part, unless a symbol knows better. */
static void judge_part(struct funcs *f, struct span *out)
{
	uint64_t lo = 0, hi = UINT64_MAX;
	const struct known *k;

	load_known(f);
	k = find_known(f, out->start, &lo, &hi);
	if (k && k->start == out->start && !k->cold)
		out->kind = SPAN_FUNC;
}

bool funcs_find(struct funcs *f, uint64_t vaddr, struct span *out)
{
	uint64_t lo = 0, hi = UINT64_MAX;
	const struct known *k;
	uint64_t from = 0, to = UINT64_MAX;

	if (!cut_to_section(f, vaddr, &from, &to))
		return false;
	if (fde_find(&f->fdes, vaddr, out, &lo, &hi)) {
		if (out->kind == SPAN_PART)
			judge_part(f, out);
	} else {
		load_known(f);
		k = find_known(f, vaddr, &lo, &hi);
		if (k)
			*out = (struct span){ k->start, k->end, hi, SPAN_FUNC, false };
		else
			*out = (struct span){ lo, hi, hi, SPAN_GAP, false };
		if (k && k->cold)
			out->kind = SPAN_PART;
	}
	out->start = out->start > from ? out->start : from;
	out->end = out->end < to ? out->end : to;
	out->next = out->next < to ? out->next : to;
	return out->start <= vaddr && vaddr < out->end;
}
