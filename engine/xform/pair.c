/*
 * Pairs: what becomes of a thing of one type in the other build.
 *
 * A pair is made once, before what it leads to, so that circles of pointers end.  Whether a
 * structure moves hangs on what it holds; that is found last, again and again until nothing
 * changes.  What nobody can know is asked for as an error with both places.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/xform/pairs.h"

bool from_system(const struct type *t)
{
	return t->place.file && (!strncmp(t->place.file, "/usr/include/", 13) ||
		!strncmp(t->place.file, "/usr/lib/", 9));
}

bool holds_pointer(const struct type *t)
{
	if (t->kind == TYPE_ARRAY)
		return holds_pointer(t->to);
	for (const struct field *f = t->fields; f; f = f->next)
		if (holds_pointer(f->type))
			return true;
	return t->kind == TYPE_POINTER;
}

static bool values_same(const struct type *a, const struct type *b)
{
	const struct value *x = a->values, *y = b->values;

	for (; x && y; x = x->next, y = y->next)
		if (strcmp(x->name, y->name) || x->number != y->number)
			return false;
	return !y;	/* more of them do no harm */
}

/* The same bytes mean the same: names, places, sizes. */
bool type_same(const struct type *a, const struct type *b)
{
	const struct field *x = a->fields, *y = b->fields;

	if (a->kind != b->kind || a->size != b->size || a->is_signed != b->is_signed)
		return false;
	if (a->kind == TYPE_ARRAY)
		return a->count == b->count && type_same(a->to, b->to);
	if (a->kind == TYPE_ENUM && !values_same(a, b))
		return false;
	for (; x && y; x = x->next, y = y->next)
		if (strcmp(x->name, y->name) || x->at != y->at || x->bits != y->bits ||
		    x->bit != y->bit || !type_same(x->type, y->type))
			return false;
	return !x && !y;
}

static struct change *change_of(struct pairing *p, const struct type *old, const struct type *new)
{
	for (struct change *c = p->changes; c; c = c->next)
		if (c->old == old && c->new == new) {
			c->used = true;
			return c;
		}
	return NULL;
}

static struct pair *pair_new(struct pairing *p, const struct type *old, const struct type *new,
	enum xform_kind kind)
{
	struct pair *pair = arena_alloc(p->u->arena, sizeof(*pair));

	*pair = (struct pair){ .old = old, .new = new, .kind = kind, .number = p->npairs++,
		.still = true };
	*p->end = pair;
	p->end = &pair->next;
	return pair;
}

static struct pair *open_union(struct pairing *p, const struct type *old, const struct type *new)
{
	struct diag *d = diag_error(p->u, place_loc(p->u, new->place),
		"the union `%s` is open: nobody says which member it is", type_text(p->u, new));

	diag_second(p->u, d, place_loc(p->u, old->place));
	diag_hint(p->u, d, "in the transform of the structure that holds it, a line for each "
		"member: MEMBER if CONDITION;");
	return NULL;
}

static struct pair *union_pair(struct pairing *p, const struct type *old, const struct type *new)
{
	struct pair *pair;

	if (type_same(old, new) && new->name && !strcmp(new->name, "pthread_mutex_t")) {
		pair = pair_new(p, old, new, XFORM_MUTEX);
		pair->still = false;
		return pair;
	}
	if (type_same(old, new) && (from_system(new) || !holds_pointer(new)))
		return pair_new(p, old, new, XFORM_BYTES);
	return open_union(p, old, new);
}

void type_missing(struct pairing *p, struct loc loc, const char *kind, const char *name,
	const struct type *old, const struct type *new)
{
	struct diag *d = diag_error(p->u, loc, "`%s%s%s` is no type of %s",
		kind ? kind : "", kind ? " " : "", name,
		old ? "the new build" : new ? "the old build" : "either build");
	const char *near = type_nearest(old ? p->new : p->old, kind, name);

	if (old || new)
		diag_second(p->u, d, place_loc(p->u, (old ? old : new)->place));
	if (near)
		diag_hint(p->u, d, "did you mean `%s%s%s`?", kind ? kind : "", kind ? " " : "",
			near);
	else if (old || new)
		diag_hint(p->u, d, "the other build has it");
}

struct pair *pair_said(struct pairing *p, struct line *l, uint64_t *inside)
{
	struct type *old = type_named(p->old, l->type_kind, l->type_name);
	struct type *new = type_named(p->new, l->type_kind, l->type_name);
	const struct flat *f = NULL;

	if (!old || !new) {
		type_missing(p, l->value_loc, l->type_kind, l->type_name, old, new);
		return NULL;
	}
	for (f = l->member ? fields_flat(p, old, NULL) : NULL; f; f = f->next)
		if (!strcmp(f->name, l->member))
			break;
	if (l->member && !f)
		diag_second(p->u, diag_error(p->u, l->value_loc, "`%s` has no field `%s`",
			type_text(p->u, old), l->member), place_loc(p->u, old->place));
	*inside = f ? f->at : 0;
	return pair_of(p, old, new);
}

/* Behind a pointer; `open`: nobody can know what is there. */
static struct pair *target_pair(struct pairing *p, const struct type *old, const struct type *new,
	bool *open)
{
	*open = old->kind == TYPE_VOID || new->kind == TYPE_VOID;
	if (*open || old->incomplete || new->incomplete)
		return NULL;
	if (from_system(old) && type_same(old, new) && !change_of(p, old, new))
		return NULL;	/* a library's: it stays where it is, as it is */
	return pair_of(p, old, new);
}

static struct pair *pointer_pair(struct pairing *p, const struct type *old, const struct type *new)
{
	struct pair *pair;
	bool open;

	if (old->to->kind == TYPE_FUNCTION && new->to->kind == TYPE_FUNCTION) {
		pair = pair_new(p, old, new, XFORM_CODE);
		pair->still = false;
		return pair;
	}
	if (old->to->kind == TYPE_FUNCTION || new->to->kind == TYPE_FUNCTION)
		return NULL;
	pair = pair_new(p, old, new, XFORM_POINTER);
	pair->to = target_pair(p, old->to, new->to, &open);
	pair->still = false;
	pair->broken = open;
	return pair;
}

static struct pair *array_pair(struct pairing *p, const struct type *old, const struct type *new)
{
	struct pair *to = pair_of(p, old->to, new->to), *pair;

	if (!to)
		return NULL;
	pair = pair_new(p, old, new, XFORM_ARRAY);
	pair->to = to;
	return pair;
}

/* Each old name has a number in the new one: its own, or another's that the user says. */
static bool enum_complete(struct pairing *p, const struct pair *pair)
{
	for (const struct value *v = pair->old->values; v; v = v->next) {
		struct line *l = line_find(pair->change, v->name, LINE_VALUE);
		const struct value *n = pair->new->values;
		struct diag *d;

		while (n && strcmp(n->name, l ? l->value : v->name))
			n = n->next;
		if (l)
			l->used = true;
		if (n)
			continue;
		d = diag_error(p->u, l ? l->value_loc : place_loc(p->u, pair->new->place),
			"`%s` is no value of `%s` in the new build", l ? l->value : v->name,
			type_text(p->u, pair->new));
		diag_second(p->u, d, place_loc(p->u, l ? pair->new->place : pair->old->place));
		diag_hint(p->u, d, "say what becomes of it: transform enum %s { %s = NAME; }",
			pair->old->name ? pair->old->name : "?", v->name);
	}
	return true;
}

static struct pair *enum_pair(struct pairing *p, const struct type *old, const struct type *new)
{
	struct pair *pair = pair_new(p, old, new, XFORM_ENUM);

	pair->change = change_of(p, old, new);
	if (type_same(old, new) && !pair->change)
		pair->kind = XFORM_BYTES;
	else
		pair->still = !enum_complete(p, pair);
	return pair;
}

static struct pair *struct_pair(struct pairing *p, const struct type *old, const struct type *new)
{
	struct pair *pair = pair_new(p, old, new, XFORM_STRUCT);

	pair->change = change_of(p, old, new);
	if (type_same(old, new) && !holds_pointer(old) && !pair->change)
		pair->kind = XFORM_BYTES;
	else
		fields_pair(p, pair);
	return pair;
}

static bool is_number(const struct type *t)
{
	return (t->kind == TYPE_NUMBER || t->kind == TYPE_FLOAT || t->kind == TYPE_ENUM);
}

static struct pair *number_pair(struct pairing *p, const struct type *old, const struct type *new)
{
	bool real = old->kind == TYPE_FLOAT || new->kind == TYPE_FLOAT;
	bool same = old->size == new->size && old->is_signed == new->is_signed &&
		(old->kind == TYPE_FLOAT) == (new->kind == TYPE_FLOAT);
	struct pair *pair;

	if (!same && (old->size > 8 || new->size > 8))
		return NULL;
	pair = pair_new(p, old, new, same ? XFORM_BYTES : real ? XFORM_REAL : XFORM_NUMBER);
	pair->still = same;
	return pair;
}

static struct pair *pair_made(struct pairing *p, const struct type *old, const struct type *new)
{
	if (is_number(old) && is_number(new))
		return old->kind == TYPE_ENUM && new->kind == TYPE_ENUM ?
			enum_pair(p, old, new) : number_pair(p, old, new);
	if (old->kind != new->kind)
		return NULL;
	switch (old->kind) {
	case TYPE_POINTER:	return pointer_pair(p, old, new);
	case TYPE_ARRAY:	return array_pair(p, old, new);
	case TYPE_STRUCT:	return struct_pair(p, old, new);
	case TYPE_UNION:	return union_pair(p, old, new);
	default:		return NULL;
	}
}

struct pair *pair_of(struct pairing *p, const struct type *old, const struct type *new)
{
	for (struct pair *pair = p->pairs; pair; pair = pair->next)
		if (pair->old == old && pair->new == new && !pair->broken)
			return pair;
	return pair_made(p, old, new);
}

struct pair *pair_unlike(struct pairing *p, const char *what, const char *how,
	struct place_in old, struct place_in new, const struct type *a, const struct type *b)
{
	struct diag *d;

	if (a->kind == TYPE_UNION && b->kind == TYPE_UNION)
		return NULL;	/* said already */
	d = diag_error(p->u, place_loc(p->u, new), "%s is `%s` (%lu bytes) now, and was `%s` "
		"(%lu bytes)", what, type_text(p->u, b), b->size, type_text(p->u, a), a->size);
	diag_second(p->u, d, place_loc(p->u, old));
	diag_hint(p->u, d, "%s", how);
	return NULL;
}
