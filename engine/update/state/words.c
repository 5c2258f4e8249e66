/*
 * An update that changes nothing but code: all of the state stays where it is, and is what it
 * was.  Only what leads into the old build is to lead into the new one: to variables, which are
 * copied there, and to functions.
 *
 * No type is asked.  Each aligned word of the variables, of the heap and of libraries' variables
 * is looked at, and one that is the address of a function, or of a place in a variable, is
 * changed.  What else leads into the old build (a text among its constants) is left: it stays
 * mapped.  A word that only looks like such an address is changed as well.
 */
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "engine/update/heap.h"
#include "engine/update/state/migrate.h"

/* From the builds' beginnings, so that no span is taken for an address itself. */
struct span {
	size_t from, size, to;
};

static int span_order(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static void spans_add(struct migration *m, size_t from, size_t size, size_t to)
{
	if (from != XFORM_NONE && to != XFORM_NONE && size)
		m->spans[m->nspans++] = (struct span){ from, size, to };
}

static bool spans_make(struct migration *m)
{
	const struct xform *x = m->x;

	m->nspans = 0;
	m->spans = calloc(x->nvariables + x->nfunctions + 1, sizeof(*m->spans));
	if (!m->spans)
		return wrong(m, "no memory");
	for (unsigned long i = 0; i < x->nvariables; i++)
		if (!x->variables[i].unlike)
			spans_add(m, x->variables[i].old_at, x->variables[i].old_size,
				x->variables[i].new_at);
	for (unsigned long i = 0; i < x->nfunctions; i++)
		spans_add(m, x->functions[i].old_at, 1, x->functions[i].new_at);
	qsort(m->spans, m->nspans, sizeof(*m->spans), span_order);
	return true;
}

/* The last one that begins there or before, if it holds the place. */
static const struct span *span_of(const struct migration *m, size_t at)
{
	size_t low = 0, high = m->nspans;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->spans[middle].from <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low && at - m->spans[low - 1].from < m->spans[low - 1].size ?
		&m->spans[low - 1] : NULL;
}

char *word_moved(const struct migration *m, const char *word)
{
	const struct span *s = image_holds(m->old, word) ?
		span_of(m, (size_t)(word - m->old->base)) : NULL;

	return s ? m->new->base + s->to + (size_t)(word - m->old->base - s->from) : NULL;
}

/* --- places where words are -------------------------------------------------------- */

struct look {
	struct migration *m;
	bool change;
};

static void words_look(void *arg, char *at, size_t size)
{
	const struct look *l = arg;
	char *end = at + size, **word = (char **)(((uintptr_t)at + 7) & ~7ul);

	l->m->nlooked += size;
	for (; (char *)(word + 1) <= end; word++) {
		char *to = word_moved(l->m, *word);

		if (!to)
			continue;
		l->m->nled++;
		if (l->change)
			*word = to;
	}
}

/* What the loader has made read-only is its own. */
static bool is_protected(const struct dl_phdr_info *info, const ElfW(Phdr) *p)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
			return p->p_vaddr < info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	return false;
}

/* How much of a writable segment is. */
static size_t protected_size(const struct dl_phdr_info *info, const ElfW(Phdr) *p)
{
	for (unsigned i = 0; is_protected(info, p) && i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
			return info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz -
				p->p_vaddr;
	return 0;
}

/* A library keeps what it is to call. */
static int library_look(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct look *l = arg;
	char *base = (char *)info->dlpi_addr;

	(void)size;
	if (base == l->m->old->base || base == l->m->new->base)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		size_t skip = protected_size(info, p);

		if (p->p_type == PT_LOAD && p->p_flags & PF_W && skip < p->p_memsz)
			words_look(arg, base + p->p_vaddr + skip, p->p_memsz - skip);
	}
	return 0;
}

static void all_look(struct migration *m, bool change)
{
	struct look l = { m, change };

	m->nled = m->nlooked = 0;
	heap_each(words_look, &l);
	dl_iterate_phdr(library_look, &l);
}

/* --- plan, fill -------------------------------------------------------------------- */

bool words_plan(struct migration *m)
{
	if (!spans_make(m))
		return false;
	for (unsigned long i = 0; i < m->x->nvariables; i++)
		if (m->x->variables[i].unlike && variable_goes(m, &m->x->variables[i]))
			return wrong(m, "`%s` is of another type in the new build, and the old one "
				"has changed it: make the transformation without -c (mve update: "
				"--code)", m->x->variables[i].name);
	for (struct kept_local *l = m->locals; l; l = l->next)
		if (!local_said(m, l))
			return wrong(m, "%s() of the new build has no local %s", l->function,
				l->name);
	all_look(m, false);
	return true;
}

static bool locals_copy(struct migration *m)
{
	for (struct kept_local *l = m->locals; l; l = l->next) {
		l->value = calloc(1, l->size + 1);
		if (!l->value)
			return wrong(m, "no memory");
		memcpy(l->value, l->at, l->size);
	}
	return true;
}

bool words_fill(struct migration *m)
{
	struct look l = { m, true };

	if (!locals_copy(m))	/* they are in the heap from here on */
		return false;
	for (unsigned long i = 0; i < m->x->nvariables; i++) {
		const struct xform_variable *v = &m->x->variables[i];

		if (!variable_goes(m, v))
			continue;
		memcpy(m->new->base + v->new_at, m->old->base + v->old_at, v->old_size);
		words_look(&l, m->new->base + v->new_at, v->old_size);
	}
	all_look(m, true);
	return true;
}

void words_tell(const struct migration *m, FILE *to)
{
	size_t n = 0;

	for (unsigned long i = 0; i < m->x->nvariables; i++)
		n += variable_goes(m, &m->x->variables[i]);
	fprintf(to, "only code is new: %zu variables taken over; %zu words that led into the old "
		"build lead into the new one, in %zu bytes of heap and libraries\n", n, m->nled,
		m->nlooked);
}
