/*
 * Memory that is bytes for who planned it, or behind a void pointer that is kept: nobody looks
 * into it, and what it holds stays.  An address of something that moves would lead into freed
 * memory then, and no check of the new state could tell: so they are looked for, and said.
 *
 * They are not changed, and no reason to refuse: such a word may be a rest of what was there
 * before, or a number that looks like one.
 */
#include <string.h>

#include "engine/update/heap.h"
#include "engine/update/state/migrate.h"

/* Between the first and the last that moves; most words are not. */
struct bounds {
	const char *first, *last;
};

static struct bounds bounds_of(const struct migration *m)
{
	struct bounds b = { NULL, NULL };

	for (size_t i = 0; i < m->nobjects; i++) {
		const struct object *o = &m->objects[i];

		if (!o->pair->moves)
			continue;
		if (!b.first || o->old < b.first)
			b.first = o->old;
		if (o->old > b.last)
			b.last = o->old;
	}
	return b;
}

static void found(struct migration *m, const struct object *at, const struct xform_pair *pair)
{
	struct opaque *o = m->opaques, *end = o + m->nopaques;

	while (o < end && !(o->in == at->in && o->where == at->where && o->pair == pair))
		o++;
	if (o == end) {
		if (m->nopaques == OPAQUES_TOLD)
			return;
		*o = (struct opaque){ at->in, at->where, pair, 0 };
		m->nopaques++;
	}
	o->n++;
}

static void words_look(struct migration *m, const struct bounds *b, const struct object *at)
{
	char *const *word = (char *const *)at->old, *const *end = word + at->size / sizeof(*word);

	for (; word < end; word++) {
		const struct object *o = *word < b->first || *word > b->last ? NULL :
			object_find(m, *word);

		if (o && o->pair->moves)
			found(m, at, o->pair);
	}
}

void opaque_look(struct migration *m)
{
	struct bounds b = bounds_of(m);

	m->nopaques = 0;
	for (size_t i = 0; b.first && i < m->nobjects; i++)
		if (is_bytes(m->objects[i].pair))
			words_look(m, &b, &m->objects[i]);
	for (size_t i = 0; b.first && i < m->nunknown; i++)
		if (!object_find(m, m->unknown[i].old))
			words_look(m, &b, &m->unknown[i]);
}

void opaque_tell(const struct migration *m, FILE *to)
{
	for (size_t i = 0; i < m->nopaques; i++) {
		const struct opaque *o = &m->opaques[i];

		fprintf(to, "warning: what `%s`%s%s%s leads to has no type, and %zu addresses of "
			"`%s` are in it, which is made anew: they stay the old ones\n", o->where,
			o->in ? " of `" : "", o->in ? o->in : "", o->in ? "`" : "", o->n,
			o->pair->name);
	}
}
