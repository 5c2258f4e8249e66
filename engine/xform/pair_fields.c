/*
 * Two structures, field by field: by name, wherever they stand.
 *
 * What only the new one has must be given a value; what only the old one has is gone.  Of a
 * union whose members are not the same bytes in both, each member needs its condition.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/xform/pairs.h"

static bool says_members(const struct change *c, const char *prefix, const struct type *t)
{
	for (const struct field *f = c ? t->fields : NULL; f; f = f->next)
		for (const struct line *l = c->lines; l; l = l->next)
			if (l->kind == LINE_LIVE && !strncmp(l->path, prefix, strlen(prefix)) &&
			    !strcmp(l->path + strlen(prefix), f->name))
				return true;
	return false;
}

struct flattening {
	struct pairing *p;
	const struct change *change;
	struct flat **end;
};

static void flatten(struct flattening *to, const struct type *t, uint64_t at, const char *prefix,
	const struct field *in_union)
{
	for (const struct field *f = t->fields; f; f = f->next) {
		const char *name = arena_format(to->p->u->arena, "%s%s", prefix, f->name);
		const char *within = *f->name ? arena_format(to->p->u->arena, "%s.", name) : prefix;
		bool opened = f->type->kind == TYPE_UNION &&
			says_members(to->change, within, f->type);

		if (opened || (!*f->name && f->type->kind == TYPE_STRUCT)) {
			flatten(to, f->type, at + f->at, within, opened ? f : in_union);
			continue;
		}
		*to->end = arena_alloc(to->p->u->arena, sizeof(**to->end));
		**to->end = (struct flat){ NULL, name, f, f->type, at + f->at,
			in_union ? in_union : t->kind == TYPE_UNION ? f : NULL };
		to->end = &(*to->end)->next;
	}
}

struct flat *fields_flat(struct pairing *p, const struct type *t, const struct change *c)
{
	struct flat *list = NULL;
	struct flattening to = { p, c, &list };

	flatten(&to, t, 0, "", NULL);
	return list;
}

static struct flat *flat_find(struct flat *list, const char *name)
{
	for (; list; list = list->next)
		if (!strcmp(list->name, name))
			return list;
	return NULL;
}

static struct row *row_add(struct pairing *p, struct pair *pair, const struct flat *old,
	const struct flat *new, struct pair *of)
{
	struct row *row = arena_alloc(p->u->arena, sizeof(*row));

	MUST(of);
	*row = (struct row){ .name = new->name, .from = old ? old->at : XFORM_NONE, .to = new->at,
		.pair = of, .flexible = new->type->kind == TYPE_ARRAY && !new->type->count };
	LIST_APPEND(struct row, pair->rows, row);
	return row;
}

static const char *place_text(struct pairing *p, const char *which, const struct type *t)
{
	return arena_format(p->u->arena, "`%s` of the %s build", type_text(p->u, t), which);
}

static void new_without_value(struct pairing *p, const struct pair *pair, const struct flat *f)
{
	struct diag *d = diag_error(p->u, place_loc(p->u, f->field->place),
		"`%s` is new in `%s`: what is its value?", f->name, type_text(p->u, pair->new));
	const char *name = pair->new->name ? pair->new->name : "?";

	diag_second(p->u, d, place_loc(p->u, pair->old->place));
	diag_hint(p->u, d, "say so: transform %s%s { %s = VALUE; }", pair->new->tagged ?
		"struct " : "", name, f->name);
}

static void no_such_field(struct pairing *p, const struct type *t, const char *which,
	struct loc loc, const char *name)
{
	struct diag *d = diag_error(p->u, loc, "%s has no field `%s`", place_text(p, which, t),
		name);
	const char *names[64], *near;
	unsigned n = 0;

	for (const struct field *f = t->fields; f && n < 64; f = f->next)
		names[n++] = f->name;
	near = nearest_of(name, names, n);
	diag_second(p->u, d, place_loc(p->u, t->place));
	if (near)
		diag_hint(p->u, d, "did you mean `%s`?", near);
}

/* A value by C: for the check behind it the field is known, for the migration it is not. */
static void set_add(struct pairing *p, struct pair *pair, const struct flat *new, struct line *l)
{
	l->used = true;
	if (l->block || new->type->kind < TYPE_STRUCT) {
		row_add(p, pair, NULL, new, pair_of(p, new->type, new->type))->from = XFORM_NONE;
		return;
	}
	diag_hint(p->u, diag_error(p->u, l->value_loc, "`%s` is no value of one word: `%s`",
		new->name, type_text(p->u, new->type)),
		"give it by C in braces, which writes to new->%s", new->name);
}

/* The several things that a pointer may lead to, each with its condition. */
static void said_add(struct pairing *p, struct pair *pair, const struct flat *old,
	const struct flat *new)
{
	for (struct line *l = pair->change->lines; l; l = l->next) {
		struct pair *pointer;
		struct row *row;

		if (strcmp(l->path, new->name) ||
		    (l->kind != LINE_TYPE && l->kind != LINE_OPAQUE))
			continue;
		l->used = true;
		pointer = arena_alloc(p->u->arena, sizeof(*pointer));
		*pointer = (struct pair){ .old = old->type, .new = new->type,
			.kind = XFORM_POINTER, .number = p->npairs++ };
		*p->end = pointer;
		p->end = &pointer->next;
		row = row_add(p, pair, old, new, pointer);
		pointer->to = l->kind == LINE_OPAQUE ? NULL : pair_said(p, l, &pointer->inside);
		row->live = l->condition ? l : NULL;
	}
}

static bool is_said(const struct pair *pair, const char *name)
{
	return line_find(pair->change, name, LINE_TYPE) ||
		line_find(pair->change, name, LINE_OPAQUE);
}

static bool said_fits(struct pairing *p, struct pair *pair, const struct flat *old,
	const struct flat *new)
{
	struct line *l = line_find(pair->change, new->name, LINE_TYPE);

	if (old->type->kind == TYPE_POINTER && new->type->kind == TYPE_POINTER)
		return true;
	l = l ? l : line_find(pair->change, new->name, LINE_OPAQUE);
	diag_second(p->u, diag_error(p->u, l->loc, "`%s` is no pointer, but `%s`", new->name,
		type_text(p->u, new->type)), place_loc(p->u, new->field->place));
	return false;
}

static void both_add(struct pairing *p, struct pair *pair, const struct flat *old,
	const struct flat *new)
{
	struct line *live = line_find(pair->change, new->name, LINE_LIVE);
	struct pair *of;
	struct diag *d;

	if (is_said(pair, new->name)) {
		if (said_fits(p, pair, old, new))
			said_add(p, pair, old, new);
		return;
	}
	if (new->in_union && !live && pair->old->kind != TYPE_UNION) {
		d = diag_error(p->u, place_loc(p->u, new->field->place),
			"the union is open: when is it `%s`?", new->name);
		diag_second(p->u, d, place_loc(p->u, old->field->place));
		diag_hint(p->u, d, "add the line: %s if CONDITION;", new->name);
		return;
	}
	if (old->field->bits || new->field->bits) {
		pair->bits = true;
		pair->bits_moved |= old->field->bit != new->field->bit ||
			old->field->bits != new->field->bits || old->at != new->at;
		return;
	}
	of = pair_of(p, old->type, new->type);
	if (!of)
		of = pair_unlike(p, arena_format(p->u->arena, "`%s` of `%s`", new->name,
			type_text(p->u, pair->new)), "give its value in a transform: FIELD = C; "
			"old-> is the old structure", old->field->place, new->field->place,
			old->type, new->type);
	if (!of)
		return;
	row_add(p, pair, old, new, of)->live = live;
	if (live)
		live->used = true;
}

static struct flat *old_of(struct pairing *p, struct pair *pair, struct flat *olds,
	const struct flat *new)
{
	struct line *l = line_find(pair->change, new->name, LINE_FROM);
	struct flat *old;

	if (!l)
		return flat_find(olds, new->name);
	l->used = true;
	old = flat_find(olds, l->value);
	if (!old)
		no_such_field(p, pair->old, "old", l->value_loc, l->value);
	return old;
}

static void new_add(struct pairing *p, struct pair *pair, struct flat *olds, const struct flat *new)
{
	struct line *value = line_find(pair->change, new->name, LINE_VALUE);
	struct flat *old;

	if (value) {
		set_add(p, pair, new, value);
		return;
	}
	old = old_of(p, pair, olds, new);
	if (old)
		both_add(p, pair, old, new);
	else if (!new->in_union && !line_find(pair->change, new->name, LINE_FROM))
		new_without_value(p, pair, new);
}

/* Is every field where it was, and is nothing in it to be changed? */
bool fields_moves(struct pair *pair)
{
	bool moves = pair->old->size != pair->new->size || pair->bits_moved, still = true;

	for (const struct line *l = pair->change ? pair->change->lines : NULL; l; l = l->next)
		moves |= l->kind == LINE_VALUE;
	for (const struct row *r = pair->rows; r; r = r->next) {
		moves |= r->from != r->to || r->pair->moves;
		still &= r->pair->still;
	}
	still &= !moves;
	if (moves == pair->moves && still == pair->still)
		return false;
	pair->moves = moves;
	pair->still = still;
	return true;
}

void fields_pair(struct pairing *p, struct pair *pair)
{
	struct flat *olds = fields_flat(p, pair->old, pair->change);
	struct flat *news = fields_flat(p, pair->new, pair->change);

	MUST(pair->kind == XFORM_STRUCT);
	for (const struct flat *f = news; f; f = f->next)
		new_add(p, pair, olds, f);
	for (const struct line *l = pair->change ? pair->change->lines : NULL; l; l = l->next)
		if (!flat_find(news, l->path))
			no_such_field(p, pair->new, "new", l->loc, l->path);
}
