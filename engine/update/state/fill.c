/*
 * Making the new state: every object has its place first, so that pointers can be set in
 * whatever order they are met.
 *
 * What does not move is changed where it is: each of its fields stands where it stood, so it
 * is read before it is written.
 */
#include "engine/update/state/migrate.h"

#include <stdlib.h>
#include <string.h>

#include "engine/update/heap.h"

static size_t size_new(const struct object *o)
{
	size_t size = o->count * o->pair->new_size;

	for (unsigned long i = 0; o->room && i < o->pair->nfields; i++) {
		const struct xform_field *f = &o->pair->fields[i];

		if (f->flexible)
			size += o->room / f->pair->to->old_size * f->pair->to->new_size;
	}
	return size;
}

static bool places_make(struct migration *m)
{
	for (size_t i = 0; i < m->nobjects; i++) {
		struct object *o = &m->objects[i];

		o->new = o->pair->moves ? calloc(1, size_new(o)) : o->old;
		if (!o->new)
			return wrong(m, "no memory");
	}
	return true;
}

/* --- where things are now ---------------------------------------------------- */

size_t place_moved(const struct xform_pair *pair, size_t at)
{
	const struct xform_pair *to = pair->kind == XFORM_ARRAY ? pair->to : NULL;
	size_t each = pair->old_size, in = each ? at % each : at;
	size_t before = each ? at / each * pair->new_size : 0;

	if (!in || !pair->moves)
		return pair->moves ? before : at;
	if (to) {
		size_t inner = place_moved(to, in);

		return inner == XFORM_NONE ? inner : before + inner;
	}
	for (unsigned long i = 0; pair->kind == XFORM_STRUCT && i < pair->nfields; i++) {
		const struct xform_field *f = &pair->fields[i];
		size_t inner;

		if (f->from == XFORM_NONE || in < f->from || in >= f->from + f->pair->old_size)
			continue;
		inner = place_moved(f->pair, in - f->from);
		return inner == XFORM_NONE ? inner : before + f->to + inner;
	}
	return XFORM_NONE;
}

/* A text among the old build's constants: the new build may have it not. */
static void *text_copy(struct migration *m, const char *at)
{
	size_t n = strnlen(at, (size_t)(m->old->end - at));
	char *copy = calloc(1, n + 1);

	if (copy)
		memcpy(copy, at, n);
	return copy;
}

static void *image_migrated(struct migration *m, const char *at)
{
	const struct xform_variable *v = variable_at(m, at);
	size_t place, from;

	if (!v)
		return text_copy(m, at);
	from = (size_t)(at - m->old->base) - v->old_at;
	place = v->pair ? place_moved(v->pair, from) :
		from / v->old_each * v->new_each + from % v->old_each;
	return m->new->base + v->new_at + (place == XFORM_NONE ? 0 : place);
}

void *migrated(struct migration *m, const void *old)
{
	const struct object *o;
	size_t size, place;
	char *base;

	if (!old)
		return NULL;
	if (image_holds(m->old, old))
		return image_migrated(m, old);
	base = heap_base(old, &size);
	o = base ? object_find(m, base) : NULL;
	if (!o || o->new == o->old)
		return (void *)old;
	place = place_moved(o->pair, (size_t)((const char *)old - o->old));
	return place == XFORM_NONE ? NULL : o->new + place;
}

void *migrated_code(struct migration *m, const void *old)
{
	if (image_holds(m->old, old))
		for (unsigned long i = 0; i < m->x->nfunctions; i++)
			if (m->old->base + m->x->functions[i].old_at == old)
				return m->new->base + m->x->functions[i].new_at;
	return (void *)old;
}

/* --- values ------------------------------------------------------------------ */

static void number_fill(const struct xform_pair *pair, char *new, const char *old)
{
	int64_t n = 0;

	memcpy(&n, old, pair->old_size);
	if (pair->old_signed && pair->old_size < 8)
		n = n << (64 - pair->old_size * 8) >> (64 - pair->old_size * 8);
	memcpy(new, &n, pair->new_size);
}

static double real_of(const struct xform_pair *pair, const char *old)
{
	int64_t n = 0;
	double d;
	float f;

	if (pair->old_real && pair->old_size == sizeof(d))
		return memcpy(&d, old, sizeof(d)), d;
	if (pair->old_real)
		return memcpy(&f, old, sizeof(f)), (double)f;
	memcpy(&n, old, pair->old_size);
	if (pair->old_signed && pair->old_size < 8)
		n = n << (64 - pair->old_size * 8) >> (64 - pair->old_size * 8);
	return pair->old_signed ? (double)n : (double)(uint64_t)n;
}

static void real_fill(const struct xform_pair *pair, char *new, const char *old)
{
	double d = real_of(pair, old);
	float f = (float)d;
	int64_t n = (int64_t)d;

	if (pair->new_real && pair->new_size == sizeof(d))
		memcpy(new, &d, sizeof(d));
	else if (pair->new_real)
		memcpy(new, &f, sizeof(f));
	else
		memcpy(new, &n, pair->new_size);
}

/* A number that has no name, such as several flags at once, stays what it is. */
static void enum_fill(const struct xform_pair *pair, char *new, const char *old)
{
	int64_t n = 0;

	memcpy(&n, old, pair->old_size);
	if (pair->old_signed && pair->old_size < 8)
		n = n << (64 - pair->old_size * 8) >> (64 - pair->old_size * 8);
	for (unsigned long i = 0; i < pair->nvalues; i++)
		if (pair->values[i].from == n) {
			n = pair->values[i].to;
			break;
		}
	memcpy(new, &n, pair->new_size);
}

static void value_fill(struct migration *m, const struct xform_pair *pair, char *new,
	const char *old, size_t room);

static void elements_fill(struct migration *m, const struct xform_pair *to, char *new,
	const char *old, size_t n)
{
	if (to->still) {
		memmove(new, old, n * to->old_size);
		return;
	}
	for (size_t i = 0; i < n; i++)
		value_fill(m, to, new + i * to->new_size, old + i * to->old_size, 0);
}

static void field_fill(struct migration *m, const struct xform_field *f, char *new,
	const char *old, size_t room)
{
	if (f->flexible)
		elements_fill(m, f->pair->to, new + f->to, old + f->from,
			room / f->pair->to->old_size);
	else
		value_fill(m, f->pair, new + f->to, old + f->from, 0);
}

static void struct_fill(struct migration *m, const struct xform_pair *pair, char *new,
	const char *old, size_t room)
{
	for (unsigned long i = 0; i < pair->nfields; i++) {
		const struct xform_field *f = &pair->fields[i];

		if (f->from != XFORM_NONE && (!f->live || f->live(old)))
			field_fill(m, f, new, old, room);
	}
	if (pair->fill)
		pair->fill(new, old);
}

static void value_fill(struct migration *m, const struct xform_pair *pair, char *new,
	const char *old, size_t room)
{
	size_t n;

	switch (pair->kind) {
	case XFORM_BYTES:
	case XFORM_MUTEX:
		memmove(new, old, pair->new_size);
		break;
	case XFORM_NUMBER:
		number_fill(pair, new, old);
		break;
	case XFORM_REAL:
		real_fill(pair, new, old);
		break;
	case XFORM_ENUM:
		enum_fill(pair, new, old);
		break;
	case XFORM_POINTER:
		*(void **)new = migrated(m, *(void *const *)old);
		break;
	case XFORM_CODE:
		*(void **)new = migrated_code(m, *(void *const *)old);
		break;
	case XFORM_STRUCT:
		struct_fill(m, pair, new, old, room);
		break;
	case XFORM_ARRAY:
		n = pair->old_count < pair->new_count ? pair->old_count : pair->new_count;
		elements_fill(m, pair->to, new, old, n);
		break;
	case XFORM_SET:
		break;
	}
}

/* --- all of it ---------------------------------------------------------------- */

static void object_fill(struct migration *m, const struct object *o)
{
	for (size_t i = 0; i < o->count && !(o->pair->still && o->new == o->old); i++)
		value_fill(m, o->pair, o->new + i * o->pair->new_size,
			o->old + i * o->pair->old_size, o->room);
}

static void variables_fill(struct migration *m)
{
	const struct xform_variable *v = m->x->variables, *end = v + m->x->nvariables;

	for (; v < end; v++)
		if (variable_goes(m, v))
			value_fill(m, v->pair, m->new->base + v->new_at,
				m->old->base + v->old_at, 0);
	for (v = m->x->variables; v < end; v++)
		if (v->fill)
			v->fill(m->new->base + v->new_at, v->old_at == XFORM_NONE ? NULL :
				m->old->base + v->old_at);
}

static bool locals_fill(struct migration *m)
{
	for (struct kept_local *l = m->locals; l; l = l->next) {
		const struct xform_local *said = local_said(m, l);

		l->value = calloc(1, said->pair->new_size + 1);
		if (!l->value)
			return wrong(m, "no memory");
		value_fill(m, said->pair, l->value, l->at, 0);
		l->size = said->pair->new_size;
	}
	return true;
}

bool migration_fill(struct migration *m)
{
	if (m->x->code_only)
		return words_fill(m);
	if (!places_make(m))
		return false;
	for (size_t i = 0; i < m->nobjects; i++)
		object_fill(m, &m->objects[i]);
	variables_fill(m);
	return locals_fill(m);
}

void migration_leave(struct migration *m)
{
	for (size_t i = 0; i < m->nobjects; i++)
		if (m->objects[i].new != m->objects[i].old)
			free(m->objects[i].old);
}
