/*
 * Where the state begins: variables, locals that the program names, arguments of threads.
 *
 * A static variable is paired with one of its file, or with the only one of its name; one in
 * a function with the function's of that name.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/xform/pairs.h"

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

const struct variable *variable_partner(const struct build *old, const struct variable *new)
{
	const struct variable *only = NULL;
	unsigned n = 0;

	for (const struct variable *v = old->variables; v; v = v->next) {
		if (strcmp(v->name, new->name) || !same(v->function, new->function))
			continue;
		if (same(v->file, new->file))
			return v;
		only = v;
		n++;
	}
	return n == 1 ? only : NULL;
}

static struct change *root_change(struct pairing *p, const char *kind, const char *name)
{
	for (struct change *c = p->changes; c; c = c->next)
		if (c->transform->kind && !strcmp(c->transform->kind, kind) &&
		    !strcmp(c->transform->name, name)) {
			c->used = true;
			return c;
		}
	return NULL;
}

static struct pair *root_said(struct pairing *p, struct change *c)
{
	struct line *l = c ? c->lines : NULL;
	struct pair *pointer, *to;
	uint64_t inside = 0;

	if (!l || (l->kind != LINE_TYPE && l->kind != LINE_OPAQUE))
		return NULL;
	l->used = true;
	to = l->kind == LINE_TYPE ? pair_said(p, l, &inside) : NULL;
	pointer = arena_alloc(p->u->arena, sizeof(*pointer));
	*pointer = (struct pair){ .kind = XFORM_POINTER, .to = to, .inside = inside,
		.number = p->npairs++ };
	*p->end = pointer;
	p->end = &pointer->next;
	return pointer;
}

/* What a void pointer leads to is asked for when it is reached from a root. */
static void ask_target(struct pairing *p, const struct pair *pair, const char *how,
	const char *name, struct place_in old, struct place_in new)
{
	struct diag *d;

	if (!pair || !pair->broken)
		return;
	d = diag_error(p->u, place_loc(p->u, new), "`%s` leads to nobody knows what", name);
	diag_second(p->u, d, place_loc(p->u, old));
	diag_hint(p->u, d, how, name);
}

static void variable_pair(struct pairing *p, const struct variable *new)
{
	const struct variable *old = variable_partner(p->old, new);
	struct change *change = root_change(p, "variable", new->name);
	struct pair_variable *v;
	struct pair *pair = NULL;
	bool given = change && change->lines && change->lines->kind == LINE_VALUE;

	if (!old && !given)
		return;
	if (!given) {
		pair = root_said(p, change);
		if (!pair && !(old->constant && new->constant))
			pair = pair_of(p, old->type, new->type);
		if (!pair && !(old->constant && new->constant))
			pair = pair_unlike(p, arena_format(p->u->arena, "`%s`", new->name),
				arena_format(p->u->arena, "say what it is: transform variable %s "
				"{ *new = C; }, where *old is the old one", new->name),
				old->place, new->place, old->type, new->type);
		ask_target(p, pair, "say so: transform variable %s { : struct NAME; }", new->name,
			old->place, new->place);
	} else {
		change->lines->used = true;
	}
	v = arena_alloc(p->u->arena, sizeof(*v));
	*v = (struct pair_variable){ p->variables, old, new, pair, given ? change : NULL,
		false };
	p->variables = v;
}

const struct local *local_partner(const struct build *old, const struct local *new)
{
	const struct local *l = old->locals;

	while (l && (strcmp(l->name, new->name) || strcmp(l->function, new->function)))
		l = l->next;
	return l;
}

static void local_pair(struct pairing *p, const struct local *new)
{
	const struct local *old = local_partner(p->old, new);
	struct pair_local *l;
	struct pair *pair;

	if (!old)
		return;
	pair = pair_of(p, old->type, new->type);
	if (!pair)
		pair = pair_unlike(p, arena_format(p->u->arena, "the local `%s`", new->name),
			"leave it its type, or keep it in a variable of the program",
			old->place, new->place, old->type, new->type);
	ask_target(p, pair, "give the local `%s` a type that is known", new->name, old->place,
		new->place);
	l = arena_alloc(p->u->arena, sizeof(*l));
	*l = (struct pair_local){ p->locals, new, pair };
	p->locals = l;
}

static void threads_pair(struct pairing *p)
{
	for (struct change *c = p->changes; c; c = c->next) {
		struct pair_thread *t;

		if (!c->transform->kind || strcmp(c->transform->kind, "thread"))
			continue;
		root_change(p, "thread", c->transform->name);
		t = arena_alloc(p->u->arena, sizeof(*t));
		*t = (struct pair_thread){ p->threads, c->transform->name, root_said(p, c) };
		p->threads = t;
	}
}

/* Void pointers in structures that are reached. */
static void fields_ask(struct pairing *p)
{
	for (const struct pair *pair = p->pairs; pair; pair = pair->next)
		for (const struct row *r = pair->rows; r; r = r->next) {
			const struct field *f = field_find(pair->new, r->name, strlen(r->name));
			const struct field *o = field_find(pair->old, r->name, strlen(r->name));
			const struct pair *to = r->pair;

			while (to->kind == XFORM_ARRAY)
				to = to->to;
			if (f && r->from != XFORM_NONE)
				ask_target(p, to, "say so in its transform: %s : struct NAME;",
					r->name, (o ? o : f)->place, f->place);
		}
}

static void unused_say(struct pairing *p)
{
	for (const struct change *c = p->changes; c; c = c->next) {
		if (!c->used && !p->u->errors)
			diag_hint(p->u, diag_error(p->u, c->transform->name_loc,
				"nothing is done with `%s`", c->transform->name),
				"no variable of either build leads there");
	}
}

static bool array_moves(struct pair *pair)
{
	bool moves = pair->to->moves || pair->old->count != pair->new->count;
	bool still = pair->to->still && !moves;

	if (moves == pair->moves && still == pair->still)
		return false;
	pair->moves = moves;
	pair->still = still;
	return true;
}

static void moves_find(struct pairing *p)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (struct pair *pair = p->pairs; pair; pair = pair->next) {
			if (pair->kind == XFORM_STRUCT)
				changed |= fields_moves(pair);
			else if (pair->kind == XFORM_ARRAY)
				changed |= array_moves(pair);
			else if (pair->kind != XFORM_BYTES)
				pair->moves = pair->old && pair->old->size != pair->new->size;
		}
	}
}

void pairs_make(struct pairing *p)
{
	MUST(!p->pairs);
	p->end = &p->pairs;
	for (const struct variable *v = p->new->variables; v; v = v->next)
		variable_pair(p, v);
	for (const struct local *l = p->new->locals; l; l = l->next)
		local_pair(p, l);
	threads_pair(p);
	fields_ask(p);
	unused_say(p);
	moves_find(p);
}
