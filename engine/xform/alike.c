/*
 * Two builds between which nothing but code changed: that all types which both have are alike,
 * and which variables and functions are the same.  What became of each address is all that the
 * transformation says.  A variable of another type (a table that grew) is the new build's own,
 * if the old one never changed it: that is found when there is one at work.  A type that differs
 * may be said not to be in use.
 */
#include "engine/core/must.h"
#include "engine/xform/pairs.h"

/* `type` can be said not to be in use; NULL: what differs cannot. */
static void unlike(struct pairing *p, const char *what, struct place_in old, struct place_in new,
	const struct type *type)
{
	struct diag *d = diag_error(p->u, place_loc(p->u, new), "%s is another in the new build: "
		"not only code changed", what);

	diag_second(p->u, d, place_loc(p->u, old));
	if (type)
		diag_hint(p->u, d, "without -c (mve update: --code) it is brought along; if "
			"nothing of it is in use, say so: transform %s { }", type_text(p->u, type));
	else
		diag_hint(p->u, d, "without -c (mve update: --code) it is brought along");
}

static bool has_layout(const struct type *t)
{
	return t->kind == TYPE_STRUCT || t->kind == TYPE_UNION || t->kind == TYPE_ENUM;
}

/* A transform without a line: the user says that there is none of it at work. */
static bool is_unused(struct pairing *p, const struct type *old)
{
	for (const struct change *c = p->changes; c; c = c->next)
		if (c->old == old)
			return true;
	return false;
}

static void changes_check(struct pairing *p)
{
	for (const struct change *c = p->changes; c; c = c->next)
		if (c->lines || !c->old)
			diag_hint(p->u, diag_error(p->u, c->transform->name_loc,
				"where only code changed nothing becomes of `%s`",
				c->transform->name), "an empty transform of a type says that "
				"none of it is in use");
}

static void types_compare(struct pairing *p)
{
	const struct named *at = NULL;
	struct type *old, *new;

	while ((old = type_next(p->old, &at)) != NULL) {
		new = has_layout(old) ? type_partner(p->new, at) : NULL;
		if (new && !type_same(old, new) && !is_unused(p, old))
			unlike(p, arena_format(p->u->arena, "`%s`", type_text(p->u, old)),
				old->place, new->place, old);
	}
}

static void variable_take(struct pairing *p, const struct variable *new)
{
	const struct variable *old = variable_partner(p->old, new);
	struct pair_variable *v;

	if (!old)
		return;
	v = arena_alloc(p->u->arena, sizeof(*v));
	*v = (struct pair_variable){ p->variables, old, new, NULL, NULL,
		!new->constant && !type_same(old->type, new->type) };
	p->variables = v;
}

static void local_take(struct pairing *p, const struct local *new)
{
	const struct local *old = local_partner(p->old, new);
	struct pair_local *l;

	if (!old)
		return;
	if (!type_same(old->type, new->type)) {
		unlike(p, arena_format(p->u->arena, "the local `%s`", new->name), old->place,
			new->place, NULL);
		return;
	}
	l = arena_alloc(p->u->arena, sizeof(*l));
	*l = (struct pair_local){ p->locals, new, NULL };
	p->locals = l;
}

void alike_make(struct pairing *p)
{
	MUST(p->code_only && !p->pairs);
	changes_check(p);
	types_compare(p);
	for (const struct variable *v = p->new->variables; v; v = v->next)
		variable_take(p, v);
	for (const struct local *l = p->new->locals; l; l = l->next)
		local_take(p, l);
}
