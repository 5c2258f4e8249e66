/*
 * Go's own table of functions (pclntab), which its files keep when they are stripped: the
 * runtime needs it.  Offsets in it, as of Go 1.18, count from the start of Go's text.  Where
 * that is the linker writes into the runtime's description of the module: its words name the
 * table itself, and later the lowest and the highest address of the table's functions and
 * the text, by which the description is known whatever else stands in it.  In a file that
 * may be loaded anywhere the words are what relocations will write.
 */
#include <elf.h>
#include <string.h>
#include "engine/core/must.h"
#include "engine/outside/plan/plan_parts.h"

#define GO_MAGIC_118	0xfffffff0
#define GO_MAGIC_120	0xfffffff1
#define HEAD_BYTES	72
#define FUNCS_MAX	(8u << 20)
#define MODULE_WORDS	48	/* of the description, in which text is looked for */

/* The words of a piece of data as a running program would see them. */
struct words {
	uint64_t vaddr;
	uint64_t word[MODULE_WORDS];
};

static bool head_read(struct go_table *g, const uint8_t *t, uint64_t len)
{
	uint64_t rows;

	if (!t || len < HEAD_BYTES || (get32(t) != GO_MAGIC_118 && get32(t) != GO_MAGIC_120) ||
	    t[7] != 8)
		return false;
	g->n = get64(t + 8);
	g->text = get64(t + 24);
	rows = get64(t + 64);
	if (!g->n || g->n > FUNCS_MAX || rows > len || (g->n + 1) * 8 > len - rows)
		return false;
	g->rows = t + rows;
	return true;
}

static bool relocations(const struct elf_view *v, unsigned i, const uint8_t **rela, uint64_t *n)
{
	struct elf_section s;

	*n = 0;
	if (!elf_section(v, i, &s))
		return false;
	*rela = NULL;
	if (s.type == SHT_RELA && s.entsize == sizeof(Elf64_Rela))
		*rela = elf_section_bytes(v, &s);
	if (*rela)
		*n = s.len / sizeof(Elf64_Rela);
	return true;
}

static bool relative(const uint8_t *rela, uint64_t i, Elf64_Rela *r)
{
	memcpy(r, rela + i * sizeof(*r), sizeof(*r));
	return ELF64_R_TYPE(r->r_info) == R_X86_64_RELATIVE;
}

static void words_read(const struct elf_view *v, struct words *w)
{
	const uint8_t *rela;
	uint64_t n;
	Elf64_Rela r;

	for (unsigned i = 0; i < MODULE_WORDS; i++) {
		const uint8_t *p = elf_at(v, w->vaddr + i * 8, 8);

		w->word[i] = p ? get64(p) : 0;
	}
	for (unsigned s = 0; relocations(v, s, &rela, &n); s++)
		for (uint64_t i = 0; i < n; i++)
			if (relative(rela, i, &r) && r.r_offset - w->vaddr < MODULE_WORDS * 8 &&
			    r.r_offset % 8 == 0)
				w->word[(r.r_offset - w->vaddr) / 8] = (uint64_t)r.r_addend;
}

/* Its lowest and highest address, and then the text that both count from. */
static bool text_in(const struct words *w, struct go_table *g)
{
	for (unsigned i = 0; i + 2 < MODULE_WORDS; i++) {
		uint64_t text = w->word[i + 2];

		if (text && w->word[i] == text + get32(g->rows) &&
		    w->word[i + 1] == text + get32(g->rows + g->n * 8)) {
			g->text = text;
			return true;
		}
	}
	return false;
}

static bool module_at(const struct elf_view *v, uint64_t vaddr, struct go_table *g)
{
	struct words w = { .vaddr = vaddr };

	words_read(v, &w);
	return text_in(&w, g);
}

static bool module_in_data(const struct elf_view *v, uint64_t table, struct go_table *g)
{
	for (unsigned k = 0; k < v->nload; k++) {
		const struct elf_load *l = &v->load[k];

		for (uint64_t i = -l->vaddr & 7; !l->exec && i + 8 <= l->len; i += 8)
			if (get64(v->bytes + l->off + i) == table &&
			    module_at(v, l->vaddr + i, g))
				return true;
	}
	return false;
}

static bool module_in_relocations(const struct elf_view *v, uint64_t table, struct go_table *g)
{
	const uint8_t *rela;
	uint64_t n;
	Elf64_Rela r;

	for (unsigned s = 0; relocations(v, s, &rela, &n); s++)
		for (uint64_t i = 0; i < n; i++)
			if (relative(rela, i, &r) && (uint64_t)r.r_addend == table &&
			    module_at(v, r.r_offset, g))
				return true;
	return false;
}

/* Without a description the text is where the header says, or .text; the entry is in it. */
static bool text_by_entry(const struct elf_view *v, struct go_table *g)
{
	struct elf_section s;

	for (unsigned i = 0; !g->text && elf_section(v, i, &s); i++)
		if (elf_section_named(v, &s, ".text"))
			g->text = s.vaddr;
	for (uint64_t i = 0; g->text && i < g->n; i++)
		if (g->text + get32(g->rows + i * 8) == v->entry)
			return true;
	return false;
}

static bool section_find(const struct elf_view *v, struct elf_section *s)
{
	for (unsigned i = 0; elf_section(v, i, s); i++)
		if (elf_section_named(v, s, ".gopclntab") ||
		    elf_section_named(v, s, ".data.rel.ro.gopclntab"))
			return true;
	return false;
}

bool go_table_open(const struct elf_view *v, struct go_table *g)
{
	struct elf_section s;

	return section_find(v, &s) && head_read(g, elf_section_bytes(v, &s), s.len) &&
	       (module_in_data(v, s.vaddr, g) || module_in_relocations(v, s.vaddr, g) ||
		text_by_entry(v, g));
}

bool go_func(const struct go_table *g, uint64_t i, uint64_t *start, uint64_t *end)
{
	MUST(g->rows && g->n && g->n <= FUNCS_MAX);
	if (i >= g->n)
		return false;
	*start = g->text + get32(g->rows + i * 8);
	*end = g->text + get32(g->rows + i * 8 + 8);
	return true;
}
