/*
 * rulec explain: which rules were tried on these events, which won, and why the
 * others did not.
 *
 * Every rule is tried from its first call on, as the automaton would, but without
 * its short cuts, so that each can say where it stopped.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "rulec/test/sim.h"

struct explain {
	struct unit *u;
	struct sim *sim;
	struct sim_calls events, calls;
};

static const struct rules_call *peek_event(struct explain *e, unsigned i)
{
	return i < e->events.n ? &e->events.at[i].call : NULL;
}

static const struct step *step_at(const struct rule *rule, unsigned i)
{
	const struct step *s = rule->steps;

	MUST(i < rule->nsteps);

	while (i--)
		s = s->next;
	return s;
}

static void why_print(struct explain *e, const struct rule *rule, unsigned step)
{
	const struct rules_run *run = &e->sim->run;
	const struct step *s = step_at(rule, step);
	const struct sim_call *event = &e->events.at[step];

	if (run->why == RULES_WHY_GUARD)
		printf("the guard in line %u says no to event %u, `%s`\n",
			diag_line(e->u, s->guard->loc), step + 1, event->row->name);
	else if (run->why == RULES_WHY_ARG && s->ncalls == 1)
		printf("`%s` of event %u, `%s`, is another\n",
			s->calls->row->desc.args[run->why_arg].name, step + 1, event->row->name);
	else
		printf("event %u is `%s`, not `%s`\n", step + 1, event->row->name,
			s->alts->name);
}

/* True when all of the left side holds. */
static bool left_explain(struct explain *e, const struct rule *rule)
{
	struct rules_run *run = &e->sim->run;

	for (unsigned i = 0; i < rule->nsteps; i++) {
		run->ev[i] = peek_event(e, i);
		run->events = i + 1;
		if (!run->ev[i]) {
			printf("waits for `%s`\n", step_at(rule, i)->alts->name);
			return false;
		}
		if (!e->sim->rules.object.left(run, rule->index, i + 1)) {
			why_print(e, rule, i);
			return false;
		}
	}
	return true;
}

static bool right_fits(struct explain *e, const struct rule *rule)
{
	for (const struct out *o = rule->outs; o; o = o->next) {
		if (e->sim->rules.object.fits(&e->sim->run, o->number))
			return true;
		if (!o->star)
			return false;
	}
	return true;
}

static void rule_explain(struct explain *e, const struct rule *rule)
{
	printf("  %s: ", rules_name(&e->sim->rules, rule->index));
	e->sim->run.why = RULES_WHY_CALL;
	if (!(e->sim->rules.on[rule->index / 32] >> rule->index % 32 & 1))
		printf("is for another stage or version\n");
	else if (rule->left == LEFT_BEGIN)
		printf("is for the follower's start\n");
	else if (rule->left == LEFT_NOTHING)
		printf(rule->flags & RULES_ROW_FIRST ? "is tried before the leader's calls\n" :
			"is tried when the follower's call is not the leader's\n");
	else if (!left_explain(e, rule))
		return;
	else if (e->calls.n && !right_fits(e, rule))
		printf("its left side holds, but the follower's `%s` is not how its right side "
			"begins\n", e->calls.at[0].row->name);
	else
		printf("holds for %u event%s\n", rule->nsteps, rule->nsteps == 1 ? "" : "s");
}

/* The call that a follower makes when nothing is said: the first of the events. */
static void call_guess(struct explain *e)
{
	if (e->calls.n || !e->events.n)
		return;
	e->calls.at[0] = e->events.at[0];
	e->calls.n = 1;
	for (unsigned i = 0; i < RULES_ARGS; i++)
		if (e->calls.at[0].row->desc.args[i].dir & DIR_OUT)
			e->calls.at[0].any |= (uint8_t)(1u << i);
}

static void outcome_print(struct explain *e, const struct sim_call *c,
	const struct sim_result *got)
{
	printf("  %s: ", c->row->name);
	if (!got->served)
		printf("diverges: %s\n", got->why);
	else if (got->rule < 0)
		printf("served by default, = %lld\n", (long long)got->ret);
	else
		printf("served %s of %s, = %lld\n", sim_how_text(got->how),
			rules_name(&e->sim->rules, (unsigned)got->rule), (long long)got->ret);
	for (unsigned i = 0; got->served && got->rule >= 0 && i < c->row->desc.nargs; i++)
		if (c->row->desc.args[i].dir == DIR_OUT && view_len(got->buf[i]))
			printf("    %s: \"%.*s\"\n", c->row->desc.args[i].name,
				(int)view_len(got->buf[i]), (const char *)got->buf[i].at_);
}

static enum rules_stage stage_of(const char *stage)
{
	return !stage ? RULES_STAGE_ANY : !strcmp(stage, "old") ? RULES_STAGE_OLD :
		RULES_STAGE_NEW;
}

static bool parse(struct explain *e, const char *name, const char *text, struct sim_calls *to)
{
	unsigned file = e->u->nsources;
	const char *at = text;

	if (!text)
		return true;
	if (file == SOURCES_MAX)
		return false;
	e->u->nsources++;
	e->u->sources[file] = (struct source){ .path = name, .text = text, .len = strlen(text) };
	return sim_parse(e->u, file, &at, text + strlen(text), to);
}

int command_explain(struct unit *u, const char *events, const char *calls, const char *stage)
{
	struct explain *e = arena_alloc(u->arena, sizeof(*e));
	unsigned rules = u->nrules;
	struct sim_result got;

	e->u = u;
	e->sim = arena_alloc(u->arena, sizeof(*e->sim));
	if (!sim_open(e->sim, u) || !parse(e, "-e", events, &e->events) ||
	    !parse(e, "-c", calls, &e->calls)) {
		diag_print(u, stderr);
		return u->errors ? EXIT_NO : EXIT_SYSTEM;
	}
	call_guess(e);
	sim_begin(e->sim, &e->events, stage_of(stage));
	printf("tried:\n");
	for (unsigned i = 0; i < rules; i++) {
		sim_ready(e->sim, &e->calls.at[0]);
		rule_explain(e, u->rules[i]);
	}
	printf("follower:\n");
	for (unsigned i = 0; i < e->calls.n; i++) {
		sim_step(e->sim, &e->calls.at[i], &got);
		outcome_print(e, &e->calls.at[i], &got);
		if (!got.served)
			return EXIT_NO;
	}
	return EXIT_OK;
}
