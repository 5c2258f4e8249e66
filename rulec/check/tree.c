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

static unsigned calls_hold(const struct unit *u, const struct call *calls)
{
	unsigned n = 0;

	for (const struct call *c = calls; c; c = c->next, n++) {
		/* Groups are unfolded: each is a row of the table. */
		MUST(c->row && !c->group);
		MUST(c->row->nr < CALL_MAX && c->row->desc.nargs <= CALL_ARGS);
		loc_holds(u, c->loc);
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
	MUST(o->label || calls_hold(u, o->calls) == o->ncalls);
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
	MUST(b->kind != BIND_VIEW || b->slot < rule->nviews);
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
	loc_holds(u, rule->loc);
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
	rules_each(u, rule_holds);
}
