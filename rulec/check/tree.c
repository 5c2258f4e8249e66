/*
 * What holds of the tree behind each pass, whatever the rules say: a pass that leaves it
 * otherwise is wrong, and no later one is to make an object of that.  A rule with an error is
 * as the pass that found it has left it.
 */
#include "engine/core/must.h"
#include "rulec/rulec.h"

static void loc_holds(const struct unit *u, struct loc loc)
{
	MUST(loc.file < u->nsources);
	MUST(loc.begin <= loc.end && loc.end <= u->sources[loc.file].len);
}

static void pattern_holds(const struct pattern *pattern)
{
	for (const struct pattern *p = pattern; p; p = p->next) {
		MUST(p->kind != PATTERN_NAME || (p->let && p->let->done && p->let->pattern));
		MUST(p->kind != PATTERN_REGEX || p->regex);
		MUST(p->kind != PATTERN_STRING || p->bytes.at);
	}
}

/* One for each argument of the row, or none where a label stands for all. */
static void args_hold(const struct call *c)
{
	unsigned n = 0;

	for (const struct arg *a = c->args; a; a = a->next, n++) {
		MUST((a->form == ARG_STRING || a->form == ARG_PATTERN) == (a->pattern != NULL));
		MUST((a->form == ARG_NAME) <= (a->name != NULL));
		pattern_holds(a->pattern);
	}
	MUST(!n || n == c->row->desc.nargs);
}

static unsigned calls_hold(const struct unit *u, const struct call *calls)
{
	unsigned n = 0;

	for (const struct call *c = calls; c; c = c->next, n++) {
		/* Groups are unfolded: each is a row of the table. */
		MUST(c->row && !c->group);
		MUST(c->row->nr < CALL_MAX && c->row->desc.nargs <= CALL_ARGS);
		loc_holds(u, c->loc);
		args_hold(c);
	}
	return n;
}

static void step_holds(const struct unit *u, const struct step *s, unsigned index)
{
	MUST(s->index == index);
	MUST(s->alts && s->calls);
	MUST(calls_hold(u, s->calls) == s->ncalls);
	loc_holds(u, s->loc);
}

static bool is_step_of(const struct rule *rule, const struct step *step)
{
	for (const struct step *s = rule->steps; s; s = s->next)
		if (s == step)
			return true;
	return false;
}

static void out_holds(const struct unit *u, const struct rule *rule, const struct out *o,
		      unsigned index)
{
	MUST(o->index == index);
	MUST(!o->label || (is_step_of(rule, o->label) && o->match == o->label));
	MUST(!o->match || is_step_of(rule, o->match));
	MUST(calls_hold(u, o->calls) == o->ncalls && o->ncalls);
	MUST((o->kind == RULES_OUT_MATCH) == (o->match != NULL));
	MUST(!o->label || !o->star);	/* a call of the leader's is met once */
	MUST(!(o->compare >> CALL_ARGS));
	loc_holds(u, o->loc);
}

static void binding_holds(const struct rule *rule, const struct binding *b)
{
	MUST(b->name && b->alts <= RULES_OUTS);
	if (b->kind == BIND_EVENT || b->kind == BIND_EVENT_RET)
		MUST(b->at < rule->nsteps);
	else if (b->kind != BIND_VIEW)
		MUST(b->at < (rule->nouts ? rule->nouts : 1));
	MUST(!b->kept || b->slot < rule->nnums);
	MUST(!b->kept || b->kind == BIND_OWN || b->kind == BIND_OWN_RET);
	MUST(b->kind != BIND_EVENT || b->alts);
	for (unsigned i = 0; i < b->alts; i++)
		MUST(b->arg[i] < CALL_ARGS);
	MUST(b->kind != BIND_VIEW || b->slot < rule->nviews);
}

/* Each has a place of its own: as many as there are. */
static void slots_hold(const struct rule *rule)
{
	unsigned views = 0, kept = 0;

	for (const struct binding *b = rule->bindings; b; b = b->next) {
		views += b->kind == BIND_VIEW;
		kept += b->kept;
	}
	MUST(views == rule->nviews);
	MUST(kept == rule->nnums);
}

static void head_holds(const struct unit *u, const struct rule *rule)
{
	MUST((rule->left == LEFT_STEPS) == (rule->steps != NULL));
	MUST((rule->left == LEFT_BEGIN) == !!(rule->flags & RULES_ROW_BEGIN));
	MUST((rule->left == LEFT_NOTHING) == !!(rule->flags & RULES_ROW_NOTHING));
	MUST(!rule->outs || !rule->drop);
	MUST(!rule->then || (rule->then->index < u->nrules &&
			     u->rules[rule->then->index] == rule->then));
	MUST(rule->within_events && rule->within_events <= RULES_STEPS);
}

static void rule_holds(struct unit *u, struct rule *rule)
{
	unsigned n = 0;

	for (const struct step *s = rule->steps; s; s = s->next)
		step_holds(u, s, n++);
	MUST(n == rule->nsteps && n <= RULES_STEPS);
	n = 0;
	for (const struct out *o = rule->outs; o; o = o->next)
		out_holds(u, rule, o, n++);
	MUST(n == rule->nouts && n <= RULES_OUTS);
	MUST(rule->nviews <= RULES_VIEWS && rule->nnums <= RULES_NUMS);
	for (const struct binding *b = rule->bindings; b; b = b->next)
		binding_holds(rule, b);
	slots_hold(rule);
	head_holds(u, rule);
	loc_holds(u, rule->loc);
}

/* Pass check gives outs their numbers, by which the object's tables are in order. */
static void outs_numbered(const struct unit *u)
{
	unsigned n = 0;

	for (unsigned i = 0; u->nouts && i < u->nrules; i++)
		for (const struct out *o = rule_outs(u->rules[i]); o; o = o->next, n++)
			MUST(o->number == n);
	MUST(n == u->nouts);
}

void tree_holds(struct unit *u)
{
	MUST(u->nsources && u->nsources <= SOURCES_MAX);
	MUST(u->nrules <= RULES_MAX || u->errors);
	for (unsigned i = 0; i < u->nrules; i++) {
		MUST(u->rules[i]->index == i);
		/* What breaks one is said. */
		MUST(!u->rules[i]->broken || u->errors);
	}
	outs_numbered(u);
	rules_each(u, rule_holds);
}
