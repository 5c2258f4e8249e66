/*
 * From names to things: calls to rows of the table, groups to their members,
 * labels to calls of the left side, patterns' names to patterns, attributes to
 * fields.  Afterwards every call in step->calls and out->calls has a row and as
 * many arguments as the row says; a rule that has not is `broken`, and the later
 * passes leave it alone.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

#define NEW(u, type) ((type *)arena_alloc((u)->arena, sizeof(type)))
#define ALTS_MAX	RULES_OUTS
#define PATTERNS_MAX	256

/* --- groups and patterns --------------------------------------------------- */

static struct group *group_find(const struct unit *u, const char *name)
{
	struct group *g = u->groups;

	while (g && strcmp(g->name, name))
		g = g->next;
	return g;
}

static struct let *let_find(const struct unit *u, const char *name)
{
	struct let *l = u->lets;

	while (l && strcmp(l->name, name))
		l = l->next;
	return l;
}

static void twice(struct unit *u, const char *what, const char *name, struct loc loc,
	struct loc first)
{
	struct diag *d = diag_error(u, loc, "%s `%s` is defined twice", what, name);

	diag_second(u, d, first);
}

static void collect(struct unit *u, struct item *i)
{
	if (i->kind == ITEM_GROUP) {
		struct group *first = group_find(u, i->group->name);
		bool many;

		if (first)
			twice(u, "group", i->group->name, i->group->name_loc, first->name_loc);
		else if (name_find(i->group->name, &many))
			diag_error(u, i->group->name_loc, "`%s` is the name of a call",
				i->group->name);
		else
			LIST_APPEND(struct group, u->groups, i->group);
	} else if (i->kind == ITEM_LET) {
		struct let *first = let_find(u, i->let->name);

		if (first)
			twice(u, "pattern", i->let->name, i->let->name_loc, first->name_loc);
		else
			LIST_APPEND(struct let, u->lets, i->let);
	}
}

static void pattern_resolve(struct unit *u, struct pattern *pattern)
{
	for (struct pattern *p = pattern; p; p = p->next) {
		if (p->kind == PATTERN_REGEX && !p->regex)
			p->regex = regex_new(u, p);
		if (p->kind != PATTERN_NAME || p->let)
			continue;
		p->let = let_find(u, p->raw.at);
		if (!p->let) {
			struct diag *d = diag_error(u, p->loc, "no pattern is called `%s`",
				p->raw.at);

			diag_hint(u, d, "`let %s = ...` makes one", p->raw.at);
		}
	}
}

static void let_resolve(struct unit *u, struct let *let)
{
	if (let->done)
		return;
	MUST(!let->visiting);
	pattern_resolve(u, let->pattern);
	let->done = let->visiting = true;
	let->size = 1;
	for (struct pattern *p = let->pattern; p; p = p->next) {
		let->size++;
		if (!p->let)
			continue;
		if (p->let->visiting) {
			diag_error(u, p->loc, "pattern `%s` stands for itself", p->let->name);
			p->let = NULL;
		} else {
			let_resolve(u, (struct let *)p->let);
			let->size += p->let->size;
		}
	}
	let->visiting = false;
	if (let->size > PATTERNS_MAX) {
		diag_error(u, let->loc, "pattern `%s` has more than %d parts", let->name,
			PATTERNS_MAX);
		let->pattern = NULL;
	}
}

/* --- calls ----------------------------------------------------------------- */

static unsigned arg_count(const struct arg *arg)
{
	unsigned n = 0;

	for (; arg; arg = arg->next)
		n++;
	return n;
}

static void signature(struct buffer *b, const struct call_name *row)
{
	for (unsigned i = 0; i < row->desc.nargs; i++)
		buffer_print(b, "%s%s", i ? ", " : "", row->desc.args[i].name);
}

static bool count_right(struct unit *u, const struct call *call, const struct call_name *row)
{
	unsigned n = arg_count(call->args);
	struct buffer b = { 0 };
	struct diag *d;

	if (call->bare || n == row->desc.nargs)
		return true;
	signature(&b, row);
	d = diag_error(u, call->loc, "`%s` has %u argument%s, not %u", row->name,
		row->desc.nargs, row->desc.nargs == 1 ? "" : "s", n);
	diag_hint(u, d, "%s(%s); one `_` stands for all", row->name, b.at ? b.at : "");
	free(b.at);
	return false;
}

static const struct call_name *row_find(struct unit *u, const struct call *call)
{
	bool many;
	const struct call_name *row = name_find(call->name, &many);
	const char *near;
	struct diag *d;

	if (row && many) {
		d = diag_error(u, call->name_loc, "several calls have the variant `%s`",
			call->name);
		diag_hint(u, d, "name the call itself, with the number as an argument");
		return NULL;
	}
	if (!row) {
		d = diag_error(u, call->name_loc, "unknown call `%s`", call->name);
		near = name_nearest(u, call->name);
		if (near)
			diag_hint(u, d, "did you mean `%s`?", near);
	}
	return row;
}

/* A call with a row and all its arguments; where `use` has none, `call`'s. */
static struct call *unfold(struct unit *u, const struct call *call, const struct call *use,
	const struct call_name *row)
{
	const struct arg *a = call->bare ? NULL : call->args;
	const struct arg *b = !use || use->bare ? NULL : use->args;
	struct call *full = NEW(u, struct call);
	const struct arg_desc *args;

	*full = *call;
	full->loc = use ? use->loc : call->loc;
	full->row = row;
	full->next = NULL;
	full->args = NULL;
	for (unsigned i = 0; i < row->desc.nargs; i++) {
		struct arg *arg = NEW(u, struct arg);
		const struct arg *from = b && b->form != ARG_ANY ? b : a;

		if (from)
			*arg = *from;
		else
			*arg = (struct arg){ .loc = full->loc, .form = ARG_ANY };
		arg->next = NULL;
		LIST_APPEND(struct arg, full->args, arg);
		a = a ? a->next : NULL;
		b = b ? b->next : NULL;
	}
	args = row->desc.args;
	for (struct arg *arg = full->args; arg; arg = arg->next, args++) {
		pattern_resolve(u, arg->pattern);
		if (arg->form == ARG_NAME && constant_meant(args, arg->name))
			constant_resolve(u, arg, args);
	}
	return full;
}

static bool group_fits(struct unit *u, const struct call *use, const struct call *member)
{
	struct diag *d;

	if (use->bare || arg_count(use->args) == member->row->desc.nargs)
		return true;
	d = diag_error(u, use->loc, "`%s` of group `%s` has %u arguments, not %u", member->name,
		use->name, member->row->desc.nargs, arg_count(use->args));
	diag_second(u, d, member->loc);
	return false;
}

/* Appends what a written call stands for; false after an error. */
static bool call_resolve(struct unit *u, struct call *call, struct call **to, unsigned *n)
{
	const struct group *g = group_find(u, call->name);

	MUST(!call->row && !call->group);	/* one look at each as it is written */

	call->group = g;
	if (!g) {
		call->row = row_find(u, call);
		if (!call->row || !count_right(u, call, call->row))
			return false;
		LIST_APPEND(struct call, *to, unfold(u, call, NULL, call->row));
		++*n;
		return true;
	}
	for (const struct call *m = g->calls; m; m = m->next) {
		if (!m->row || !group_fits(u, call, m))
			return false;
		LIST_APPEND(struct call, *to, unfold(u, m, call, m->row));
		++*n;
	}
	return true;
}

static bool names_constant(const struct call *c, const struct arg *a)
{
	unsigned i = 0;

	for (const struct arg *x = c->args; x != a; x = x->next)
		i++;
	return c->row && constant_meant(&c->row->desc.args[i], a->name);
}

static void group_resolve(struct unit *u, struct group *g)
{
	for (struct call *c = g->calls; c; c = c->next) {
		if (group_find(u, c->name)) {
			diag_error(u, c->loc, "a group holds calls, not groups");
			continue;
		}
		c->row = row_find(u, c);
		if (c->row && !count_right(u, c, c->row))
			c->row = NULL;
		for (const struct arg *a = c->args; a; a = a->next)
			if (a->form == ARG_NAME && !names_constant(c, a))
				diag_error(u, a->loc, "a group binds no names");
	}
}

/* --- one rule -------------------------------------------------------------- */

/* Of a call as it is written: a binding has a place for each. */
static void alts_check(struct unit *u, struct rule *rule, struct loc loc, unsigned n)
{
	if (n <= ALTS_MAX)
		return;
	diag_error(u, loc, "more than %d alternatives", ALTS_MAX);
	rule->broken = true;
}

static void steps_resolve(struct unit *u, struct rule *rule)
{
	MUST(!rule->nsteps);
	for (struct step *s = rule->steps; s; s = s->next) {
		s->index = rule->nsteps++;
		rule->guarded |= s->guard != NULL;
		for (struct call *c = s->alts; c; c = c->next)
			if (!call_resolve(u, c, &s->calls, &s->ncalls))
				rule->broken = true;
		alts_check(u, rule, s->loc, s->ncalls);
		for (const struct step *t = rule->steps; t != s; t = t->next) {
			if (!s->label || !t->label || strcmp(s->label, t->label))
				continue;
			diag_second(u, diag_error(u, s->label_loc, "label `%s` is bound twice",
				s->label), t->label_loc);
			rule->broken = true;
		}
	}
	if (rule->nsteps > RULES_STEPS) {
		diag_error(u, rule->left_loc, "more than %d calls on the left", RULES_STEPS);
		rule->broken = true;
	}
}

static struct step *label_find(const struct rule *rule, const char *name)
{
	struct step *s = rule->steps;

	while (s && (!s->label || strcmp(s->label, name)))
		s = s->next;
	return s;
}

/* `=> self` where nothing is called so: is it a label that is missing? */
static void label_missing(struct unit *u, const struct rule *rule, const struct out *out)
{
	const char *labels[RULES_STEPS], *near;
	unsigned n = 0;
	struct diag *d = diag_error(u, out->call->name_loc,
		"no call on the left has the label `%s`", out->call->name);
	bool many;

	for (const struct step *s = rule->steps; s && n < RULES_STEPS; s = s->next)
		if (s->label)
			labels[n++] = s->label;
	near = nearest_of(out->call->name, labels, n);
	if (near)
		diag_hint(u, d, "did you mean `%s`?", near);
	else if (name_find(out->call->name, &many) || group_find(u, out->call->name))
		diag_hint(u, d, "a call needs its arguments: `%s(_)`", out->call->name);
	else
		diag_hint(u, d, "`as %s` behind a call of the left side makes one",
			out->call->name);
}

static bool label_resolve(struct unit *u, struct rule *rule, struct out *out)
{
	struct step *s = out->label;

	if (s->ncalls == 0)
		return false;
	if (out->guard && !out->action) {
		out->action = out->guard;
		out->guard = NULL;
	}
	if (out->star) {
		diag_error(u, out->loc, "a call of the leader is replayed once, so no `*`");
		return false;
	}
	for (const struct call *c = s->calls; c; c = c->next) {
		struct call *full;

		if (out->has_args && !count_right(u, out->call, c->row))
			return false;
		full = unfold(u, c, NULL, c->row);
		full->args = out->has_args ?
			unfold(u, out->call, NULL, c->row)->args : NULL;
		LIST_APPEND(struct call, out->calls, full);
		out->ncalls++;
	}
	(void)rule;
	return true;
}

static bool names_it(const struct call *c, const struct call *written)
{
	return c->group ? c->group == written->group : !written->group && c->row == written->row;
}

/* The one left-hand call of the same name, when the right side has it once. */
static struct step *match_find(const struct rule *rule, const struct out *out)
{
	struct step *found = NULL;

	MUST(!out->label);

	if (out->star)
		return NULL;
	for (struct step *s = rule->steps; s; s = s->next) {
		if (!names_it(s->alts, out->call))
			continue;
		if (found || s->alts->next)
			return NULL;
		found = s;
	}
	for (const struct out *o = rule->outs; o; o = o->next)
		if (o != out && !o->label && names_it(o->call, out->call))
			return NULL;
	return found;
}

static void outs_resolve(struct unit *u, struct rule *rule)
{
	MUST(!rule->nouts);
	for (struct out *o = rule->outs; o; o = o->next) {
		o->index = rule->nouts++;
		o->label = label_find(rule, o->call->name);
		if (o->label) {
			o->match = o->label;
			rule->broken |= !label_resolve(u, rule, o);
		} else if (!o->has_args) {
			label_missing(u, rule, o);
			rule->broken = true;
		} else if (!call_resolve(u, o->call, &o->calls, &o->ncalls)) {
			rule->broken = true;
		}
		alts_check(u, rule, o->loc, o->ncalls);
	}
	for (struct out *o = rule->outs; o && !rule->broken; o = o->next) {
		if (!o->label)
			o->match = match_find(rule, o);
		o->kind = o->match ? RULES_OUT_MATCH :
			rule->flags & RULES_ROW_DISCARD ? RULES_OUT_ANSWER : RULES_OUT_RUN;
	}
	if (rule->nouts > RULES_OUTS) {
		diag_error(u, rule->right_loc, "more than %d calls on the right", RULES_OUTS);
		rule->broken = true;
	}
}

/* --- attributes ------------------------------------------------------------ */

static const struct rule *rule_find(const struct unit *u, const char *name)
{
	for (unsigned i = 0; i < u->nrules; i++)
		if (u->rules[i]->name && !strcmp(u->rules[i]->name, name))
			return u->rules[i];
	return NULL;
}

static bool within_set(struct rule *rule, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);
	unsigned long ms = !strcmp(end, "ms") ? n : !strcmp(end, "s") ? n * 1000 : 0;

	if (n == 0 || n > 60000 || ms > 60000 || (*end && !ms) || (!*end && n > RULES_STEPS))
		return false;
	if (*end)
		rule->within_ms = (unsigned)ms;
	else
		rule->within_events = (unsigned)n;
	return true;
}

static void value_resolve(struct unit *u, struct rule *rule, const struct attr *a)
{
	if (!strcmp(a->name, "leader"))
		rule->leader = a->value;
	else if (!strcmp(a->name, "follower"))
		rule->follower = a->value;
	else if (!strcmp(a->name, "within") && !within_set(rule, a->value))
		diag_hint(u, diag_error(u, a->value_loc, "not a limit: `%s`", a->value),
			"@within 100ms, at most 60s, or a number of events, at most %d",
			RULES_STEPS);
	if (strcmp(a->name, "then"))
		return;
	rule->then = rule_find(u, a->value);
	if (!rule->then)
		diag_error(u, a->value_loc, "no rule is called `%s`", a->value);
}

static void attrs_resolve(struct unit *u, struct rule *rule)
{
	static const struct { const char *name; unsigned flag; } flags[] = {
		{ "process", RULES_ROW_PROCESS }, { "old", RULES_ROW_OLD },
		{ "new", RULES_ROW_NEW }, { "discard", RULES_ROW_DISCARD },
		{ "first", RULES_ROW_FIRST }, { "apart", RULES_ROW_APART },
	};
	static const char *const names[] = { "process", "old", "new", "discard", "leader",
		"follower", "within", "then", "first", "apart" };

	rule->within_ms = RULES_WITHIN_MS;
	rule->within_events = RULES_STEPS;
	for (const struct attr *a = rule->attrs; a; a = a->next) {
		unsigned known = 0;

		for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
			if (!strcmp(flags[i].name, a->name))
				known = flags[i].flag;
		rule->flags |= known;
		if (a->value) {
			value_resolve(u, rule, a);
		} else if (!known) {
			const char *near = nearest_of(a->name, names,
				sizeof(names) / sizeof(names[0]));
			struct diag *d = diag_error(u, a->loc, "no such attribute: `@%s`",
				a->name);

			diag_hint(u, d, near ? "did you mean `@%s`?" : "there are @leader, "
				"@follower, @old, @new, @process, @discard, @first, @apart, "
				"@within, @then", near);
		}
	}
}

static void rule_resolve(struct unit *u, struct rule *rule)
{
	const struct rule *first = rule->name ? rule_find(u, rule->name) : NULL;

	if (first && first != rule)
		twice(u, "rule", rule->name, rule->name_loc, first->name_loc);
	attrs_resolve(u, rule);
	if (rule->left == LEFT_BEGIN)
		rule->flags |= RULES_ROW_BEGIN;
	if (rule->left == LEFT_NOTHING)
		rule->flags |= RULES_ROW_NOTHING;
	steps_resolve(u, rule);
	outs_resolve(u, rule);
}

static void rules_number(struct unit *u)
{
	unsigned n = 0;

	for (unsigned f = 0; f < u->nsources; f++)
		for (const struct item *i = u->sources[f].items; i; i = i->next)
			n += i->kind == ITEM_RULE;
	u->rules = arena_alloc(u->arena, (n + 1) * sizeof(*u->rules));
	for (unsigned f = 0; f < u->nsources; f++)
		for (const struct item *i = u->sources[f].items; i; i = i->next) {
			if (i->kind != ITEM_RULE)
				continue;
			if (u->nrules == RULES_MAX)
				diag_error(u, i->loc, "more than %d rules", RULES_MAX);
			i->rule->index = u->nrules;
			MUST(u->nrules < n);
			u->rules[u->nrules++] = i->rule;
		}
}

void rules_each(struct unit *u, void (*pass)(struct unit *u, struct rule *rule))
{
	for (unsigned i = 0; i < u->nrules; i++) {
		unsigned errors = u->errors;

		if (!u->rules[i]->broken)
			pass(u, u->rules[i]);
		u->rules[i]->broken |= u->errors != errors;
	}
}

void pass_resolve(struct unit *u)
{
	for (unsigned f = 0; f < u->nsources; f++)
		for (struct item *i = u->sources[f].items; i; i = i->next)
			collect(u, i);
	for (struct let *l = u->lets; l; l = l->next)
		let_resolve(u, l);
	for (struct group *g = u->groups; g; g = g->next)
		group_resolve(u, g);
	rules_number(u);
	u->shaky = u->errors > 0;
	rules_each(u, rule_resolve);
}
