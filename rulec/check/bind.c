/*
 * Names in rules: where each gets its value, and what a use of it means.
 *
 * A name is bound by the first place of the left side that has it, or by an
 * argument of a call on the right; any further place is a comparison.  C blocks
 * may bind views with `(a, b) = f(...)`, regular expressions with named groups.
 * Memory of a follower's call is there for that call only; a number that a later
 * call of the right side uses is kept in the thread's state.
 */
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

#define NEW(u, type) ((type *)arena_alloc((u)->arena, sizeof(type)))

struct binding *bind_find(const struct rule *rule, const char *name)
{
	struct binding *b = rule->bindings;

	while (b && strcmp(b->name, name))
		b = b->next;
	return b;
}

static struct binding *bind_new(struct unit *u, struct rule *rule, const char *name,
	struct loc loc, enum bind_kind kind)
{
	struct binding *b = NEW(u, struct binding);

	*b = (struct binding){ .name = name, .loc = loc, .kind = kind };
	LIST_APPEND(struct binding, rule->bindings, b);
	return b;
}

bool bind_has_arg(const struct binding *b, unsigned alt, unsigned arg)
{
	return (b->kind == BIND_EVENT || b->kind == BIND_OWN) && alt < b->alts &&
		b->arg[alt] == arg;
}

bool bind_is_matched(const struct binding *b, const struct out *out, unsigned arg)
{
	return b->kind == BIND_EVENT && out->match && b->at == out->match->index &&
		bind_has_arg(b, 0, arg);
}

/* --- arguments that are names ---------------------------------------------- */

/* Where a name stands in each alternative; false: not in all of them. */
static bool alts_fill(struct unit *u, struct binding *b, const struct call *calls)
{
	for (const struct call *c = calls; c; c = c->next) {
		unsigned i = 0;
		const struct arg *a = c->args;

		while (a && !(a->form == ARG_NAME && !strcmp(a->name, b->name)))
			a = a->next, i++;
		if (!a) {
			diag_error(u, b->loc, "`%s` is not bound in every alternative", b->name);
			return false;
		}
		if (c != calls && arg_is_memory(&c->row->desc.args[i]) != b->view) {
			diag_error(u, a->loc, "`%s` is a number in one alternative and memory "
				"in another", b->name);
			return false;
		}
		MUST(b->alts < RULES_OUTS);
		b->arg[b->alts++] = (uint8_t)i;
	}
	return true;
}

static void name_bind(struct unit *u, struct rule *rule, const struct call *calls,
	const struct arg *arg, unsigned index, enum bind_kind kind, unsigned at)
{
	struct binding *b = bind_find(rule, arg->name);

	if (b || !strcmp(arg->name, "ret"))
		return;
	b = bind_new(u, rule, arg->name, arg->loc, kind);
	b->view = arg_is_memory(&calls->row->desc.args[index]);
	b->at = at;
	if (!alts_fill(u, b, calls))
		rule->broken = true;
}

static void slot_new(struct unit *u, struct rule *rule, struct binding *b, struct loc loc)
{
	if (rule->nviews == RULES_VIEWS) {
		diag_error(u, loc, "more than %d views in one rule", RULES_VIEWS);
		rule->broken = true;
	}
	MUST(rule->nviews <= RULES_VIEWS || rule->broken);
	b->slot = rule->nviews++;
	b->view = true;
}

/* Names of a regular expression's groups. */
static void groups_bind(struct unit *u, struct rule *rule, const struct pattern *pattern)
{
	for (const struct pattern *p = pattern; p; p = p->next) {
		if (p->let)
			groups_bind(u, rule, p->let->pattern);
		for (unsigned i = 0; p->regex && i < p->regex->ngroups; i++) {
			const char *name = p->regex->group[i];
			struct binding *b = name ? bind_find(rule, name) : NULL;

			if (name && !b)
				slot_new(u, rule, bind_new(u, rule, name, p->loc, BIND_VIEW),
					p->loc);
			else if (b && b->kind != BIND_VIEW)
				diag_second(u, diag_error(u, p->loc, "`%s` is bound twice", name),
					b->loc);
		}
	}
}

static void call_bind(struct unit *u, struct rule *rule, const struct call *calls,
	enum bind_kind kind, unsigned at)
{
	unsigned i = 0;

	for (const struct call *c = calls; c; c = c->next, i = 0)
		for (const struct arg *a = c->args; a; a = a->next, i++) {
			if (a->form == ARG_NAME && !strcmp(a->name, "ret"))
				diag_error(u, a->loc, "`ret` is the result's name");
			else if (a->form == ARG_NAME && c == calls)
				name_bind(u, rule, calls, a, i, kind, at);
			else if (a->form == ARG_NAME && !bind_find(rule, a->name))
				diag_error(u, a->loc,
					"`%s` is not bound in every alternative", a->name);
			groups_bind(u, rule, a->pattern);
		}
}

/* --- names that C uses ----------------------------------------------------- */

static struct step *step_of(const struct rule *rule, const char *label, size_t len)
{
	struct step *s = rule->steps;

	while (s && !(s->label && strlen(s->label) == len && !memcmp(s->label, label, len)))
		s = s->next;
	return s;
}

/* `label.fd`: an argument by its name in the table; `label.ret`. */
static struct binding *dotted(struct unit *u, struct rule *rule, const char *name)
{
	const char *dot = strchr(name, '.');
	struct step *s = step_of(rule, name, (size_t)(dot - name));
	struct binding b = { .name = name, .kind = BIND_EVENT };
	struct binding *kept;

	MUST(dot);

	if (!s || !s->calls)
		return NULL;
	b.at = s->index;
	b.loc = s->label_loc;
	if (!strcmp(dot + 1, "ret"))
		b.kind = BIND_EVENT_RET;
	for (const struct call *c = s->calls; c && b.kind == BIND_EVENT; c = c->next) {
		unsigned i = 0;

		while (i < c->row->desc.nargs && strcmp(c->row->desc.args[i].name, dot + 1))
			i++;
		if (i == c->row->desc.nargs)
			return NULL;
		b.view = arg_is_memory(&c->row->desc.args[i]);
		b.arg[b.alts++] = (uint8_t)i;
	}
	kept = NEW(u, struct binding);
	*kept = b;
	LIST_APPEND(struct binding, rule->bindings, kept);
	return kept;
}

/* `ret`, for the call that a piece of C belongs to. */
static struct binding *result_of(struct unit *u, const struct place *at)
{
	struct binding *b = NEW(u, struct binding);

	*b = (struct binding){ .name = "ret", .kind = BIND_OWN_RET };
	if (at->step) {
		b->kind = BIND_EVENT_RET;
		b->at = at->step->index;
	} else if (!at->action && at->out->match) {
		b->kind = BIND_EVENT_RET;
		b->at = at->out->match->index;
	} else {
		b->at = at->out->index;
	}
	return b;
}

struct binding *bind_use(struct unit *u, const struct place *at, const char *name)
{
	struct binding *b = bind_find(at->rule, name);

	if (b)
		return b;
	if (strchr(name, '.'))
		return dotted(u, at->rule, name);
	if (!strcmp(name, "ret") && (at->step || (at->action && at->out->calls) || at->out->match))
		return result_of(u, at);
	return NULL;
}

static void unbound(struct unit *u, const struct place *at, const struct c_use *use)
{
	const char *names[64], *near;
	unsigned n = 0;
	struct diag *d = diag_error(u, use->loc, "`%s` is not bound", use->name);

	for (const struct binding *b = at->rule->bindings; b && n < 64; b = b->next)
		names[n++] = b->name;
	near = nearest_of(use->name, names, n);
	if (near)
		diag_hint(u, d, "did you mean `%s`?", near);
	else if (!strcmp(use->name, "ret") && at->action)
		diag_hint(u, d, "which call's? `as x` behind one makes `$(x.ret)` its result");
	else if (!strcmp(use->name, "ret"))
		diag_hint(u, d, "a call that is yet to be made has no result: use `-> (ret)`");
	at->rule->broken = true;
}

static void keep(struct unit *u, const struct place *at, struct binding *b, struct loc loc)
{
	struct out *from = at->rule->outs;

	if (b->kept)
		return;
	if (at->rule->nnums == RULES_NUMS) {
		diag_error(u, loc, "more than %d numbers kept in one rule", RULES_NUMS);
		at->rule->broken = true;
		return;
	}
	MUST(b->kind == BIND_OWN || b->kind == BIND_OWN_RET);
	while (from->index != b->at)
		from = from->next;
	b->kept = true;
	b->slot = at->rule->nnums++;
	b->next_kept = from->kept;
	from->kept = b;
	from->flags |= RULES_OUT_ACTION;
}

/* Is the value there yet, and still? */
static void use_check(struct unit *u, const struct place *at, struct binding *b,
	struct loc loc, const char *name)
{
	bool own = b->kind == BIND_OWN || b->kind == BIND_OWN_RET;
	struct diag *d = NULL;

	if (own && at->step)
		d = diag_error(u, loc, "`%s` is the follower's: the left side cannot see it", name);
	else if (b->kind == BIND_EVENT && at->step && b->at > at->step->index)
		d = diag_error(u, loc, "`%s` is bound by a later call", name);
	else if (own && at->out && b->at > at->out->index)
		d = diag_error(u, loc, "`%s` is bound by a later call", name);
	else if (own && at->out && b->at < at->out->index && b->view)
		d = diag_error(u, loc, "`%s` is memory of an earlier call of the follower", name);
	if (d) {
		if (b->loc.end)
			diag_second(u, d, b->loc);
		at->rule->broken = true;
	} else if (own && at->out && b->at < at->out->index) {
		keep(u, at, b, loc);
	}
}

/* An action edits the event that it answers from, its call's buffers and result. */
static bool may_assign(const struct place *at, const struct binding *b)
{
	if (b->kind == BIND_VIEW)
		return true;
	if (!at->action)
		return false;
	if (!at->out->calls)
		return false;
	if (b->kind == BIND_OWN_RET)
		return b->at == at->out->index;
	if (b->kind == BIND_EVENT)
		return at->out->match && b->at == at->out->match->index;
	if (b->kind == BIND_OWN && b->at == at->out->index && b->view) {
		const struct arg_desc *arg = &at->out->calls->row->desc.args[b->arg[0]];

		return !at->out->match && arg->dir & DIR_OUT && at->out->kind == RULES_OUT_ANSWER;
	}
	return false;
}

/* The follower's own argument, where the leader's that it is compared with was meant. */
static bool means_leaders(const struct place *at, const struct binding *b)
{
	return at->action && b->kind == BIND_OWN && at->out->match && b->at == at->out->index;
}

static void assign_check(struct unit *u, const struct place *at, const struct binding *b,
	const struct c_use *use)
{
	struct diag *d;

	if (!use->assigned || may_assign(at, b))
		return;
	d = diag_error(u, use->loc, "`%s` cannot be edited here", use->name);
	if (means_leaders(at, b))
		diag_hint(u, d, "it is the follower's own; `$(%s.%s)` is the leader's%s",
			at->out->match->label ? at->out->match->label : "x",
			at->out->calls->row->desc.args[b->arg[0]].name,
			at->out->match->label ? "" : ", where `as x` names its call");
	else
		diag_hint(u, d, "%s", at->action ?
			"an action edits the call that it answers, and its result" :
			"a guard only looks; an action behind `->` edits");
	at->rule->broken = true;
}

static void code_bind(struct unit *u, const struct place *at, const struct code *code)
{
	if (!code)
		return;
	for (struct c_use *use = cblock_uses(u, code); use; use = use->next) {
		struct binding *b = bind_use(u, at, use->name);

		if (!b && use->fills) {
			b = bind_new(u, at->rule, use->name, use->loc, BIND_VIEW);
			slot_new(u, at->rule, b, use->loc);
		}
		if (!b) {
			unbound(u, at, use);
			continue;
		}
		use_check(u, at, b, use->loc, use->name);
		if (use->fills && b->kind != BIND_VIEW)
			diag_second(u, diag_error(u, use->loc, "`%s` is an argument's name",
				use->name), b->loc);
		else
			assign_check(u, at, b, use);
	}
}

/* --- a rule ---------------------------------------------------------------- */

/* Names on the right that compare with earlier ones must still be there. */
static void args_check(struct unit *u, const struct place *at)
{
	for (const struct call *c = at->out->calls; c; c = c->next)
		for (const struct arg *a = c->args; a; a = a->next) {
			struct binding *b = a->form == ARG_NAME ?
				bind_find(at->rule, a->name) : NULL;

			if (b && b->at != at->out->index)
				use_check(u, at, b, a->loc, a->name);
		}
}

/* `-> (ret)` needs no binding: every action knows its call's `ret`. */
static void result_bind(struct unit *u, struct rule *rule, const struct out *o)
{
	struct binding *b;

	if (!o->result || !strcmp(o->result, "ret"))
		return;
	b = bind_find(rule, o->result);
	if (b) {
		diag_second(u, diag_error(u, o->result_loc, "`%s` is bound twice", o->result),
			b->loc);
		rule->broken = true;
		return;
	}
	b = bind_new(u, rule, o->result, o->result_loc, BIND_OWN_RET);
	b->at = o->index;
}

static void rule_bind(struct unit *u, struct rule *rule)
{
	for (struct step *s = rule->steps; s; s = s->next) {
		call_bind(u, rule, s->calls, BIND_EVENT, s->index);
		code_bind(u, &(struct place){ rule, s, NULL, false }, s->guard);
	}
	for (struct out *o = rule->outs; o; o = o->next) {
		struct place guard = { rule, NULL, o, false }, action = { rule, NULL, o, true };

		call_bind(u, rule, o->calls, BIND_OWN, o->index);
		args_check(u, &guard);
		code_bind(u, &guard, o->guard);
		result_bind(u, rule, o);
		code_bind(u, &action, o->action);
	}
	if (rule->drop)
		code_bind(u, &(struct place){ rule, NULL, rule->drop, true }, rule->drop->action);
}

void pass_bind(struct unit *u)
{
	rules_each(u, rule_bind);
}
