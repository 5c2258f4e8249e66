/*
 * The walk over the old state: what there is, by type; what cannot be brought along, by name.
 *
 * Nothing is changed here.  An allocation has one type: where two pointers mean different
 * ones, that which holds the other at its beginning, or the one that is more than bytes.
 */
#include "engine/update/state/migrate.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/update/state/epoll.h"
#include "engine/update/heap.h"

#define LEAST_ADDRESS	4096	/* smaller values of pointers are marks */

bool wrong(struct migration *m, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (!*m->why)
		vsnprintf(m->why, sizeof(m->why), format, list);
	va_end(list);
	return false;
}

/* ... in which structure; the innermost is said. */
static bool wrong_in(struct migration *m, const char *name)
{
	char what[WHY_SIZE];

	if (strncmp(m->why, "in ", 3)) {
		memcpy(what, m->why, sizeof(what));
		snprintf(m->why, sizeof(m->why), "in `%s`: %.*s", name,
			(int)sizeof(what) - 80, what);
	}
	return false;
}

bool is_bytes(const struct xform_pair *pair)
{
	return pair->kind == XFORM_BYTES && pair->old_size == 1;
}

/* --- objects ---------------------------------------------------------------- */

static size_t slot_of(const struct migration *m, const char *old)
{
	size_t at = ((uintptr_t)old >> 4) * 0x9e3779b97f4a7c15ul & (m->nslots - 1);

	while (m->slots[at] && m->objects[m->slots[at] - 1].old != old)
		at = (at + 1) & (m->nslots - 1);
	return at;
}

struct object *object_find(const struct migration *m, const char *old)
{
	size_t slot = m->nslots ? slot_of(m, old) : 0;

	return m->nslots && m->slots[slot] ? &m->objects[m->slots[slot] - 1] : NULL;
}

static bool grow(void **rows, size_t *size, size_t n, size_t row)
{
	void *more;

	if (n < *size)
		return true;
	*size = *size ? *size * 2 : 1024;
	more = realloc(*rows, *size * row);
	if (more)
		*rows = more;
	return more;
}

static bool slots_grow(struct migration *m)
{
	uint32_t *old = m->slots;

	if (m->nslots > m->nobjects * 2)
		return true;
	m->nslots = m->nslots ? m->nslots * 2 : 4096;
	m->slots = calloc(m->nslots, sizeof(*m->slots));
	if (!m->slots)
		return wrong(m, "no memory");
	for (size_t i = 0; i < m->nobjects; i++)
		m->slots[slot_of(m, m->objects[i].old)] = (uint32_t)i + 1;
	free(old);
	return true;
}

/* The field at the end that is as long as there is room; NULL: none. */
static const struct xform_field *flexible_of(const struct xform_pair *pair)
{
	for (unsigned long i = 0; pair->kind == XFORM_STRUCT && i < pair->nfields; i++)
		if (pair->fields[i].flexible)
			return &pair->fields[i];
	return NULL;
}

static bool object_shape(struct migration *m, struct object *o, const char *where)
{
	const struct xform_pair *pair = o->pair;

	o->count = pair->old_size ? o->size / pair->old_size : 1;
	o->room = 0;
	if (flexible_of(pair)) {
		o->count = 1;
		o->room = o->size - pair->old_size;
	}
	if (pair->kind == XFORM_BYTES && pair->still)
		return true;
	if (o->size < pair->old_size || (!o->room && pair->old_size &&
			o->size % pair->old_size && !flexible_of(pair)))
		return wrong(m, "%s leads to %zu bytes, which are no whole `%s` (%lu bytes each)",
			where, o->size, pair->name, pair->old_size);
	return true;
}

/* It holds one of the other type at its beginning. */
static bool begins_with(const struct xform_pair *pair, const struct xform_pair *other)
{
	if (pair == other)
		return true;
	if (pair->kind == XFORM_ARRAY)
		return begins_with(pair->to, other);
	for (unsigned long i = 0; pair->kind == XFORM_STRUCT && i < pair->nfields; i++)
		if (!pair->fields[i].from && begins_with(pair->fields[i].pair, other))
			return true;
	return false;
}

static bool value_plan(struct migration *m, const struct xform_pair *pair, const char *at,
	size_t room, const char *where);

static bool object_contents(struct migration *m, const struct object *o)
{
	struct object copy = *o;	/* the list may grow, and be elsewhere */

	for (size_t i = 0; i < copy.count && !copy.pair->still; i++)
		if (!value_plan(m, copy.pair, copy.old + i * copy.pair->old_size, copy.room,
				copy.pair->name))
			return false;
	return true;
}

static bool object_again(struct migration *m, struct object *o, const struct xform_pair *pair,
	const char *where)
{
	if (begins_with(o->pair, pair) || is_bytes(pair))
		return true;
	if (!begins_with(pair, o->pair) && !is_bytes(o->pair)) {
		if (o->pair->still && pair->still)
			return true;
		return wrong(m, "%s leads to `%s`, which is `%s` for others", where, pair->name,
			o->pair->name);
	}
	o->pair = pair;
	return object_shape(m, o, where) && object_contents(m, o);
}

static bool object_add(struct migration *m, char *base, size_t size,
	const struct xform_pair *pair, const char *where)
{
	struct object *o = object_find(m, base);

	if (o)
		return object_again(m, o, pair, where);
	if (!grow((void **)&m->objects, &m->objects_size, m->nobjects, sizeof(*o)) ||
	    !slots_grow(m))
		return wrong(m, "no memory");
	o = &m->objects[m->nobjects];
	*o = (struct object){ .old = base, .size = size, .pair = pair, .in = m->in,
		.where = where };
	m->slots[slot_of(m, base)] = (uint32_t)++m->nobjects;
	return object_shape(m, o, where);
}

/* --- pointers --------------------------------------------------------------- */

const struct xform_variable *variable_at(const struct migration *m, const char *at)
{
	for (unsigned long i = 0; i < m->x->nvariables; i++) {
		const struct xform_variable *v = &m->x->variables[i];
		const char *begin = m->old->base + v->old_at;

		if (v->old_at != XFORM_NONE && at >= begin &&
		    at < begin + v->old_size)
			return v;
	}
	return NULL;
}

static bool image_plan(struct migration *m, const struct xform_pair *to, const char *at,
	const char *where)
{
	if (variable_at(m, at))
		return true;
	if (to && is_bytes(to) && image_fresh(m->old, at, 1))
		return true;	/* a text of the program: it is copied */
	return wrong(m, "%s leads to something of the old build that the new one has not", where);
}

static bool inner_add(struct migration *m, const char *at, const struct xform_pair *pair,
	const char *where)
{
	if (!grow((void **)&m->inners, &m->inners_size, m->ninners, sizeof(*m->inners)))
		return wrong(m, "no memory");
	m->inners[m->ninners++] = (struct inner){ at, where, pair };
	return true;
}

/* Nobody looks behind it, but for addresses (opaque.c). */
static bool unknown_add(struct migration *m, char *base, size_t size, const char *where)
{
	if (!grow((void **)&m->unknown, &m->unknown_size, m->nunknown, sizeof(*m->unknown)))
		return wrong(m, "no memory");
	m->unknown[m->nunknown++] = (struct object){ .old = base, .size = size, .in = m->in,
		.where = where };
	return true;
}

static bool pointer_plan(struct migration *m, const struct xform_pair *pair, const char *at,
	const char *where)
{
	const struct xform_pair *to = pair->to;
	size_t size;
	char *base;

	if ((uintptr_t)at < LEAST_ADDRESS || (intptr_t)at < 0)
		return true;
	if (image_holds(m->old, at))
		return image_plan(m, to, at, where);
	if (m->is_stack(at))
		return wrong(m, "%s leads to the stack of a thread, which begins anew", where);
	base = heap_base(at, &size);
	if (!base)
		return true;	/* a library's, or nobody's: see the check */
	if (!to)
		return unknown_add(m, base, size, where);
	if (base == at - pair->inside)
		return object_add(m, base, size, to, where);
	return inner_add(m, at, to, where);
}

/* What leads into the middle of an allocation needs somebody who knows what that is. */
static bool inner_plan(struct migration *m, const struct inner *inner)
{
	size_t size;
	char *base = heap_base(inner->at, &size);
	const struct object *o = object_find(m, base);

	if (!o && is_bytes(inner->pair))
		return true;
	if (!o)
		return wrong(m, "%s leads into %zu bytes that nobody knows: say which structure's "
			"field it is (FIELD : struct NAME.FIELD;)", inner->where, size);
	if (place_moved(o->pair, (size_t)(inner->at - o->old)) == XFORM_NONE)
		return wrong(m, "%s leads to a field of `%s` that is gone", inner->where,
			o->pair->name);
	return true;
}

/* --- values ----------------------------------------------------------------- */

static bool number_plan(struct migration *m, const struct xform_pair *pair, const char *at,
	const char *where)
{
	unsigned bits = (unsigned)pair->new_size * 8;
	int64_t n = 0;
	bool fits;

	memcpy(&n, at, pair->old_size);
	if (pair->old_signed && pair->old_size < 8)
		n = n << (64 - pair->old_size * 8) >> (64 - pair->old_size * 8);
	if (pair->old_signed || n >= 0)
		fits = pair->new_signed ? bits == 64 || (n >> (bits - 1)) == (n < 0 ? -1 : 0) :
			n >= 0 && (bits == 64 || !(n >> bits));
	else
		fits = !pair->new_signed && bits == 64;
	return fits || wrong(m, "%s is %ld, which no `%s` of the new build can be", where, (long)n,
		pair->name);
}

static bool code_plan(struct migration *m, const char *at, const char *where)
{
	if (!image_holds(m->old, at))
		return true;
	for (unsigned long i = 0; i < m->x->nfunctions; i++)
		if (m->old->base + m->x->functions[i].old_at == at)
			return m->x->functions[i].new_at != XFORM_NONE || wrong(m,
				"%s leads to %s(), which the new build has not", where,
				m->x->functions[i].name);
	return wrong(m, "%s leads to no function of the old build", where);
}

static bool array_plan(struct migration *m, const struct xform_pair *pair, const char *at,
	const char *where)
{
	const struct xform_pair *to = pair->to;
	size_t used = pair->old_count < pair->new_count ? pair->old_count : pair->new_count;

	for (size_t i = 0; i < used && !to->still; i++)
		if (!value_plan(m, to, at + i * to->old_size, 0, where))
			return false;
	for (size_t i = used * to->old_size; i < pair->old_size; i++)
		if (at[i])
			return wrong(m, "%s is shorter now, and its element %zu is used",
				where, i / to->old_size);
	return true;
}

static bool struct_plan(struct migration *m, const struct xform_pair *pair, const char *at,
	size_t room)
{
	const char *in = m->in;

	m->in = pair->name;
	for (unsigned long i = 0; i < pair->nfields; i++) {
		const struct xform_field *f = &pair->fields[i];
		const struct xform_pair *of = f->flexible ? f->pair->to : f->pair;
		size_t n = f->flexible ? room / of->old_size : 1;

		if (f->from == XFORM_NONE || of->still || (f->live && !f->live(at)))
			continue;
		for (size_t k = 0; k < n; k++) {
			const char *field = at + f->from + k * of->old_size;

			if (!value_plan(m, of, field, 0, f->name))
				return wrong_in(m, pair->name);
		}
	}
	m->in = in;
	return true;
}

static bool value_plan(struct migration *m, const struct xform_pair *pair, const char *at,
	size_t room, const char *where)
{
	switch (pair->kind) {
	case XFORM_NUMBER:
		return number_plan(m, pair, at, where);
	case XFORM_POINTER:
		return pointer_plan(m, pair, *(char *const *)at, where);
	case XFORM_MUTEX:	/* its first word is libc's own: who has it, 0: nobody */
		m->later |= *(const int *)at != 0;
		return !*(const int *)at || wrong(m, "%s is held by a thread that stands: an "
			"update point is inside of the lock", where);
	case XFORM_CODE:
		return code_plan(m, *(char *const *)at, where);
	case XFORM_STRUCT:
		return struct_plan(m, pair, at, room);
	case XFORM_ARRAY:
		return array_plan(m, pair, at, where);
	default:
		return true;
	}
}

/* --- roots ------------------------------------------------------------------ */

/* What the old version never changed is the new one's own. */
bool variable_goes(const struct migration *m, const struct xform_variable *v)
{
	return (v->pair || m->x->code_only) && !v->constant && v->old_at != XFORM_NONE &&
		!image_fresh(m->old, m->old->base + v->old_at, v->old_size);
}

const struct xform_local *local_said(const struct migration *m, const struct kept_local *l)
{
	for (unsigned long i = 0; i < m->x->nlocals; i++)
		if (!strcmp(m->x->locals[i].function, l->function) &&
		    !strcmp(m->x->locals[i].name, l->name))
			return &m->x->locals[i];
	return NULL;
}

const struct xform_thread *thread_said(const struct migration *m, const char *function)
{
	for (unsigned long i = 0; i < m->x->nthreads; i++)
		if (!strcmp(m->x->threads[i].function, function))
			return &m->x->threads[i];
	return NULL;
}

const char *function_name(const struct migration *m, const void *at)
{
	for (unsigned long i = 0; i < m->x->nfunctions; i++)
		if (m->old->base + m->x->functions[i].old_at == at)
			return m->x->functions[i].name;
	return "a function without a name";
}

/* One of the type is at the place. */
static bool is_at(const struct xform_pair *pair, size_t at, const struct xform_pair *of)
{
	if (!at && begins_with(pair, of))
		return true;
	if (pair->kind == XFORM_ARRAY)
		return pair->to->old_size && is_at(pair->to, at % pair->to->old_size, of);
	for (unsigned long i = 0; pair->kind == XFORM_STRUCT && i < pair->nfields; i++) {
		const struct xform_field *f = &pair->fields[i];

		if (f->from <= at && at - f->from < f->pair->old_size &&
		    is_at(f->pair, at - f->from, of))
			return true;
	}
	return false;
}

/* What a variable is its type says: what a person says of it must be that. */
static bool variable_argument(struct migration *m, const char *function,
	const struct xform_variable *v, const struct xform_thread *t, const char *at)
{
	size_t place = (size_t)(at - m->old->base) - v->old_at;
	const struct xform_pair *of = t ? t->pair->to : NULL;

	if (!v->pair || v->pair->kind == XFORM_BYTES)
		return true;
	if (of && (place < t->pair->inside || !is_at(v->pair, place - t->pair->inside, of)))
		return wrong(m, "the argument of thread %s() leads into the variable %s, where "
			"no `%s` is", function, v->name, of->name);
	return place_moved(v->pair, place) != XFORM_NONE ||
		wrong(m, "the argument of thread %s() leads to a part of the variable %s that is "
			"gone", function, v->name);
}

bool plan_argument(struct migration *m, const char *function, const void *argument)
{
	const struct xform_thread *t = thread_said(m, function);
	const struct xform_variable *v = !m->x->code_only && image_holds(m->old, argument) ?
		variable_at(m, argument) : NULL;
	size_t size;

	if (v)
		return variable_argument(m, function, v, t, argument);
	if (t)
		return pointer_plan(m, t->pair, argument, function);
	if (m->is_stack(argument))
		return wrong(m, "the argument of thread %s() leads to the stack of a thread, which "
			"begins anew", function);
	/* Where only code changed it is in the heap, and looked at there (words.c). */
	if (m->x->code_only)
		return true;
	if (!image_holds(m->old, argument) &&
	    ((uintptr_t)argument < LEAST_ADDRESS || !heap_base(argument, &size)))
		return true;
	return wrong(m, "nobody knows what the argument of thread %s() leads to: say "
		"`transform thread %s { : struct NAME; }`", function, function);
}

bool migration_plan(struct migration *m)
{
	bool ok = true;

	*m->x->old_base = m->old->base;
	*m->x->new_base = m->new->base;
	if (m->x->code_only)
		return words_plan(m);
	for (unsigned long i = 0; ok && i < m->x->nvariables; i++) {
		const struct xform_variable *v = &m->x->variables[i];

		if (variable_goes(m, v))
			ok = value_plan(m, v->pair, m->old->base + v->old_at, 0, v->name);
	}
	for (struct kept_local *l = m->locals; ok && l; l = l->next) {
		const struct xform_local *said = local_said(m, l);

		if (!said || said->pair->old_size != l->size)
			ok = wrong(m, "%s() of the new build has no local %s", l->function,
				l->name);
		else
			ok = value_plan(m, said->pair, l->at, 0, l->name);
	}
	return ok;
}

bool objects_plan(struct migration *m)
{
	bool ok = true;

	for (size_t i = 0; ok && i < m->nobjects; i++)
		ok = object_contents(m, &m->objects[i]);
	for (size_t i = 0; ok && i < m->ninners; i++)
		ok = inner_plan(m, &m->inners[i]);
	if (ok)
		opaque_look(m);
	return ok;
}

#define TOLD_MAX	256	/* types that are counted by name */

/* How many there are of each type, and what becomes of them. */
void migration_tell(const struct migration *m, FILE *to)
{
	const struct xform_pair *pairs[TOLD_MAX];
	size_t counts[TOLD_MAX] = { 0 }, n = 0, k;

	if (m->x->code_only)
		words_tell(m, to);
	for (size_t i = 0; i < m->nobjects; i++) {
		for (k = 0; k < n && pairs[k] != m->objects[i].pair; k++)
			;
		if (k == n && n < TOLD_MAX)
			pairs[n++] = m->objects[i].pair;
		if (k < n)
			counts[k] += m->objects[i].count;
	}
	for (k = 0; k < n; k++)
		fprintf(to, "%s: %zu%s, %s\n", pairs[k]->name, counts[k],
			is_bytes(pairs[k]) ? " bytes" : "", pairs[k]->moves ? "made anew" :
			pairs[k]->still ? "as they are" : "changed in place");
	for (unsigned long i = 0; !m->x->code_only && i < m->x->nvariables; i++)
		if (variable_goes(m, &m->x->variables[i]))
			fprintf(to, "variable %s: taken over\n", m->x->variables[i].name);
	epoll_tell(to);
	opaque_tell(m, to);
}

void migration_free(struct migration *m)
{
	free(m->objects);
	free(m->slots);
	free(m->inners);
	free(m->spans);
	free(m->unknown);
	m->spans = NULL;
	m->unknown = NULL;
	m->nunknown = m->unknown_size = m->nopaques = 0;
	m->objects = NULL;
	m->slots = NULL;
	m->inners = NULL;
	m->nobjects = m->nslots = m->ninners = m->objects_size = m->inners_size = 0;
}
