/*
 * What a rule may say: patterns that fit their arguments, content that the
 * leader records, calls that a follower may make by itself.  Decides for each
 * call on the right how it is served: its flags, and which arguments are
 * compared as they would be without rules.
 */
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

/* --- arguments against patterns -------------------------------------------- */

static void arg_error(struct unit *u, struct rule *rule, const struct call *c,
	const struct arg *a, unsigned i, const char *text, const char *hint)
{
	const struct arg_desc *desc = &c->row->desc.args[i];

	diag_hint(u, diag_error(u, a->loc, "`%s` of `%s` %s", desc->name, c->row->name, text),
		"%s", hint);
	rule->broken = true;
}

/* A pattern of content: is there content? */
static void content_check(struct unit *u, struct rule *rule, const struct call *c,
	const struct arg *a, unsigned i)
{
	const struct arg_desc *desc = &c->row->desc.args[i];

	if (desc->kind == KIND_PTR || desc->kind == KIND_HEX || desc->kind == KIND_SKIP)
		arg_error(u, rule, c, a, i, "points to content that the leader does not record",
			"only its address can be compared");
	else if (!arg_is_memory(desc))
		arg_error(u, rule, c, a, i, "is a number, not content",
			"compare it with a number, or name it and use a guard");
}

static void form_check(struct unit *u, struct rule *rule, const struct call *c,
	const struct arg *a, unsigned i)
{
	const struct arg_desc *desc = &c->row->desc.args[i];

	if (a->form == ARG_STRING || a->form == ARG_PATTERN)
		content_check(u, rule, c, a, i);
	else if (a->form == ARG_NUMBER && arg_is_memory(desc))
		arg_error(u, rule, c, a, i, "is memory, not a number",
			"compare its content with a string; `-` is the null pointer");
	else if (a->form == ARG_NULL && !arg_is_memory(desc) && desc->kind != KIND_PTR)
		arg_error(u, rule, c, a, i, "is a number: `-` is the null pointer",
			"write 0, or -1");
}

static void left_call_check(struct unit *u, struct rule *rule, const struct call *c)
{
	unsigned i = 0;

	if (c->row->desc.class == CLASS_LOCAL) {
		diag_hint(u, diag_error(u, c->loc, "the leader does not record `%s`", c->row->name),
			"every version makes its own; only a right side can name it");
		rule->broken = true;
		return;
	}
	if (c->row->desc.class == CLASS_SOFT)
		u->flags |= RULES_CLOCKS;
	for (const struct arg *a = c->args; a; a = a->next)
		form_check(u, rule, c, a, i++);
}

/* --- the right side -------------------------------------------------------- */

/* `read(_, "text", 4)`: what the follower gets, and how long it is. */
static void given_check(struct unit *u, struct rule *rule, const struct out *o,
	const struct call *c, const struct arg *a, unsigned i)
{
	int count = c->row->desc.args[i].len_arg;
	const struct arg *n = c->args;

	MUST(a->pattern);

	if (a->form == ARG_PATTERN || o->kind == RULES_OUT_RUN || a->pattern->prefix) {
		arg_error(u, rule, c, a, i, "is written by the call: it cannot be compared",
			"a string says what the follower gets; bind it and edit it in an action");
		return;
	}
	for (int k = 0; k < count && n; k++)
		n = n->next;
	if (c->row->desc.args[i].len_rule != LEN_RULE_RESULT || !n || n->form != ARG_NUMBER ||
	    n->number == (int64_t)a->pattern->bytes.len)
		return;
	diag_second(u, diag_error(u, n->loc, "the buffer has %zu bytes, not %lld",
		a->pattern->bytes.len, (long long)n->number), a->loc);
	rule->broken = true;
}

bool out_gives(const struct out *o, const struct call *c, const struct arg *a, unsigned i)
{
	return !(c->row->desc.args[i].dir & DIR_IN) && c->row->desc.args[i].dir & DIR_OUT &&
		(a->form == ARG_STRING || a->form == ARG_PATTERN) && o->kind != RULES_OUT_RUN;
}

bool out_counts_given(const struct out *o, const struct call *c, unsigned i)
{
	int buf = arg_counts_result_of(c->row, i);
	unsigned k = 0;

	for (const struct arg *a = c->args; a && buf >= 0; a = a->next, k++)
		if (k == (unsigned)buf)
			return out_gives(o, c, a, k);
	return false;
}

static void right_call_check(struct unit *u, struct rule *rule, struct out *o,
	const struct call *c)
{
	unsigned i = 0;

	for (const struct arg *a = c->args; a; a = a->next, i++) {
		const struct arg_desc *desc = &c->row->desc.args[i];
		struct binding *b = a->form == ARG_NAME ? bind_find(rule, a->name) : NULL;

		form_check(u, rule, c, a, i);
		if (b && b->view != arg_is_memory(desc) && !bind_has_arg(b, 0, i)) {
			diag_second(u, diag_error(u, a->loc, "`%s` is %s", a->name, b->view ?
				"memory, this argument a number" :
				"a number, this argument memory"), b->loc);
			rule->broken = true;
		}
		if (b && bind_is_matched(b, o, i) && c == o->calls)
			o->compare |= 1u << i;
		if (!rule->broken && (a->form == ARG_STRING || a->form == ARG_PATTERN) &&
		    desc->dir == DIR_OUT)
			given_check(u, rule, o, c, a, i);
		if (out_gives(o, c, a, i))
			o->flags |= RULES_OUT_ACTION;
	}
}

static void effect(struct unit *u, struct rule *rule, const struct out *o,
	const struct call *c, bool guarded)
{
	struct diag *d = diag_error(u, c->loc, "`%s` would have an effect outside of the follower",
		c->row->name);

	rule->broken = true;
	if (guarded)
		diag_hint(u, d, "on a file that a rule opened: name the descriptor, and let a "
			"guard say which; else @discard answers it as success");
	else if (c->row->desc.class == CLASS_LIFE)
		diag_hint(u, d, "a process or thread cannot begin or end by a rule");
	else
		diag_hint(u, d, "@discard answers it as success, and nothing happens");
	(void)o;
}

static bool looks_at_fd(const struct out *o)
{
	return o->guard && o->calls->args && o->calls->args->form == ARG_NAME;
}

/*
 * Where a rule only adds it, a call on a descriptor (lseek) is for one that a rule's call
 * opened: any other is the leader's, and so is the call.
 */
static bool is_added_alone(const struct rule *rule, const struct out *o, const struct call *c)
{
	return rule->left == LEFT_NOTHING && !o->index && c->row->desc.class == CLASS_EFFECT &&
	       c->row->desc.nargs && c->row->desc.args[0].kind == KIND_FD;
}

static void run_check(struct unit *u, struct rule *rule, struct out *o)
{
	for (const struct call *c = o->calls; c; c = c->next) {
		int flags = name_effect(c->row);

		if (flags < 0 || (flags & NAME_GUARDED && !looks_at_fd(o)))
			effect(u, rule, o, c, flags > 0);
		else
			o->flags |= (unsigned)flags & 0xff;
		if (!flags && is_added_alone(rule, o, c))
			o->flags |= RULES_OUT_PRIVATE;
		if (c->row->desc.class == CLASS_SOFT)
			u->flags |= RULES_CLOCKS;
	}
}

/* An edit of the argument that counts the result is about the result. */
static void count_edits(struct unit *u, struct rule *rule, struct out *o)
{
	if (!o->action || !o->match)
		return;
	for (const struct c_use *use = cblock_uses(u, o->action); use; use = use->next) {
		const struct binding *b = use->assigned ? bind_find(rule, use->name) : NULL;

		if (b && b->kind == BIND_EVENT && b->at == o->match->index &&
		    arg_counts_result_of(o->calls->row, b->arg[0]) >= 0)
			o->compare &= ~(1u << b->arg[0]);
	}
}

static void guard_check(struct unit *u, struct rule *rule, const struct code *guard)
{
	const char *end;

	if (guard && !cblock_brackets(u, guard))
		rule->broken = true;
	if (!guard || rule->broken || cblock_returns(u, guard))
		return;
	end = guard->text.at + guard->text.len;
	for (const char *at = guard->text.at; at < end; at++)
		if (*at == ';') {
			diag_hint(u, diag_error(u, guard->loc, "a guard must return a truth value"),
				"without `return` it is one expression, and has no `;`");
			rule->broken = true;
			return;
		}
}

static void out_check(struct unit *u, struct rule *rule, struct out *o)
{
	for (const struct call *c = o->calls; c; c = c->next)
		right_call_check(u, rule, o, c);
	if (o->kind == RULES_OUT_RUN && !rule->broken)
		run_check(u, rule, o);
	if (o->label && !o->has_args)
		o->compare = (1u << o->calls->row->desc.nargs) - 1;
	if (o->star)
		o->flags |= RULES_OUT_STAR;
	if (o->action || o->kind == RULES_OUT_ANSWER)
		o->flags |= RULES_OUT_ACTION;
	guard_check(u, rule, o->guard);
	if (o->action && !cblock_brackets(u, o->action))
		rule->broken = true;
	count_edits(u, rule, o);
}

/* `=> nothing -> { ... }`: what is to be done when the calls are dropped. */
static void drop_check(struct unit *u, struct rule *rule, struct out *drop)
{
	drop->flags |= RULES_OUT_ACTION;
	rule->flags |= RULES_ROW_TELLS;
	if (!cblock_brackets(u, drop->action))
		rule->broken = true;
}

/* --- whole rules ----------------------------------------------------------- */

static void names_compare(struct unit *u, struct rule *rule, const struct call *c)
{
	unsigned i = 0;

	for (const struct arg *a = c->args; a; a = a->next, i++) {
		const struct binding *b = a->form == ARG_NAME ? bind_find(rule, a->name) : NULL;

		if (b && b->view != arg_is_memory(&c->row->desc.args[i])) {
			diag_second(u, diag_error(u, a->loc, "`%s` is bound twice, as a number and "
				"as memory", a->name), b->loc);
			rule->broken = true;
		}
	}
}

static bool is_single(const struct rule *rule)
{
	return rule->nsteps == 1 && rule->steps->ncalls == 1 && rule->nouts == 1 &&
		rule->outs->match && !rule->outs->star;
}

static void then_check(struct unit *u, struct rule *rule)
{
	const struct rule *r = rule->then;
	const char *why = NULL;

	if (!r || r->broken)
		return;
	if (!is_single(rule) || !is_single(r) ||
	    rule->steps->calls->row->nr != r->steps->calls->row->nr)
		why = "`@then` joins rules that edit one and the same call";
	for (unsigned n = 0; r && !why; r = r->then, n++)
		if (r == rule || n > u->nrules)
			why = "`@then` leads back to this rule";
	if (!why)
		return;
	for (const struct attr *a = rule->attrs; a; a = a->next)
		if (!strcmp(a->name, "then"))
			diag_error(u, a->loc, "%s", why);
	rule->broken = true;
}

/* Its left side is one call, and that gives connections. */
static bool accepts(const struct rule *rule)
{
	if (rule->nsteps != 1)
		return false;
	for (const struct call *c = rule->steps->calls; c; c = c->next)
		if (!call_has(&c->row->desc, TRAIT_ACCEPTS))
			return false;
	return true;
}

static void rule_check(struct unit *u, struct rule *rule)
{
	if (rule->left != LEFT_STEPS && !rule->outs) {
		diag_error(u, rule->loc, "this rule does nothing");
		rule->broken = true;
	}
	if (rule->left != LEFT_NOTHING && rule->flags & RULES_ROW_FIRST) {
		diag_error(u, rule->left_loc, "`@first` is for calls that a rule adds: "
			"`nothing => ...`");
		rule->broken = true;
	}
	if (rule->flags & RULES_ROW_APART && !accepts(rule)) {
		diag_error(u, rule->left_loc,
			   "`@apart` is for an accept, whose result is a connection");
		rule->broken = true;
	}
	for (struct step *s = rule->steps; s; s = s->next) {
		for (const struct call *c = s->calls; c; c = c->next) {
			left_call_check(u, rule, c);
			names_compare(u, rule, c);
		}
		guard_check(u, rule, s->guard);
	}
	for (struct out *o = rule->outs; o; o = o->next)
		out_check(u, rule, o);
	if (rule->drop)
		drop_check(u, rule, rule->drop);
	then_check(u, rule);
	if (rule->flags & RULES_ROW_PROCESS)
		u->flags |= RULES_HAS_PROCESS;
	if (rule->flags & RULES_ROW_APART)
		u->flags |= RULES_HAS_APART;
}

void pass_check(struct unit *u)
{
	MUST(!u->nouts);	/* outs have their numbers once */
	rules_each(u, rule_check);
	for (unsigned i = 0; i < u->nrules; i++)
		for (struct out *o = rule_outs(u->rules[i]); o; o = o->next)
			o->number = u->nouts++;
}
