/*
 * Two builds between which nothing but code changed: that all types which both have are alike,
 * and which variables and functions are the same.  What became of each address is all that the
 * transformation says.
 */
#include "engine/core/must.h"
#include "engine/xform/pairs.h"

static void unlike(struct pairing *p, const char *what, struct place_in old, struct place_in new)
{
	struct diag *d = diag_error(p->u, place_loc(p->u, new), "%s is another in the new build: "
		"not only code changed", what);

	diag_second(p->u, d, place_loc(p->u, old));
	diag_hint(p->u, d, "make the transformation without -c");
}

static bool has_layout(const struct type *t)
{
	return t->kind == TYPE_STRUCT || t->kind == TYPE_UNION || t->kind == TYPE_ENUM;
}

static void types_compare(struct pairing *p)
{
	const struct named *at = NULL;
	struct type *old, *new;

	while ((old = type_next(p->old, &at)) != NULL) {
		new = has_layout(old) ? type_partner(p->new, at) : NULL;
		if (new && !type_same(old, new))
			unlike(p, arena_format(p->u->arena, "`%s`", type_text(p->u, old)),
				old->place, new->place);
	}
}

static void variable_take(struct pairing *p, const struct variable *new)
{
	const struct variable *old = variable_partner(p->old, new);
	struct pair_variable *v;

	if (!old)
		return;
	if (!new->constant && !type_same(old->type, new->type)) {
		unlike(p, arena_format(p->u->arena, "`%s`", new->name), old->place, new->place);
		return;
	}
	v = arena_alloc(p->u->arena, sizeof(*v));
	*v = (struct pair_variable){ p->variables, old, new, NULL, NULL };
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
			new->place);
		return;
	}
	l = arena_alloc(p->u->arena, sizeof(*l));
	*l = (struct pair_local){ p->locals, new, NULL };
	p->locals = l;
}

void alike_make(struct pairing *p)
{
	MUST(p->code_only && !p->pairs);
	types_compare(p);
	for (const struct variable *v = p->new->variables; v; v = v->next)
		variable_take(p, v);
	for (const struct local *l = p->new->locals; l; l = l->next)
		local_take(p, l);
}
