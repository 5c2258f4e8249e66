/*
 * The automaton as C: which rule begins here.
 *
 * pick_..._left() walks the states by the numbers of the events.  In the deepest
 * state that it reaches it tries the rules that end there, in order, then those
 * of the state before, and so on: the longest left side wins, among equals the
 * earlier rule.  If a longer one may still come to hold, it answers "wait".
 *
 * Each state is a label, each way down or back a goto: no table to load, no
 * loop, and what is left to the processor is a few predictable branches.
 */
#include <stdlib.h>

#include "rulec/emit.h"

bool rule_may_be_off(const struct rule *rule)
{
	return rule->leader || rule->follower ||
		rule->flags & (RULES_ROW_OLD | RULES_ROW_NEW);
}

/* Does the right side begin with the follower's call? */
static void first_test(const struct rule *rule, struct buffer *to)
{
	const struct out *o = rule->outs;

	if (!o) {
		buffer_print(to, "true");
		return;
	}
	for (; o && o->star; o = o->next)
		buffer_print(to, "fits_%u(run) || ", o->number);
	if (o)
		buffer_print(to, "fits_%u(run)", o->number);
	else
		buffer_print(to, "true");
}

static void on_test(const struct rule *rule, struct buffer *to)
{
	if (rule_may_be_off(rule))
		buffer_print(to, "rules_on(run, %u) && ", rule->index);
}

/* --- the walk -------------------------------------------------------------------------- */

static void down_emit(const struct state *s, struct buffer *to)
{
	buffer_print(to, "\tif (rules_more(run, %u)) {\n\t\tswitch (run->ev[%u]->nr) {\n",
		s->depth, s->depth);
	for (const struct edge *e = s->edges; e; e = e->next)
		buffer_print(to, "\t\tcase %u: goto s%u;\n", e->nr, e->to->number);
	buffer_print(to, "\t\tdefault: break;\n\t\t}\n\t}");
	if (!s->depth) {
		buffer_print(to, "\n\treturn RULES_NONE;\n");
		return;
	}
	buffer_print(to, " else if (!run->expired) {\n");
	for (const struct rule_list *r = s->through; r; r = r->next) {
		buffer_print(to, "\t\tif (");
		on_test(r->rule, to);
		buffer_print(to, "left_%u(run, %u) && (", r->rule->index, s->depth);
		first_test(r->rule, to);
		buffer_print(to, ")) {\n\t\t\trun->waits = %u;\n\t\t\treturn RULES_WAIT;\n\t\t}\n",
			r->rule->index);
	}
	buffer_print(to, "\t}\n");
}

static bool falls_here(const struct state *s)
{
	return s->edges && s->depth;
}

static void state_emit(const struct state *s, struct buffer *to)
{
	if (s->depth)
		buffer_print(to, "s%u:\n", s->number);
	if (s->edges)
		down_emit(s, to);
	if (!s->depth)
		return;
	if (falls_here(s))
		buffer_print(to, "a%u:\n", s->number);
	for (const struct rule_list *r = s->ends; r; r = r->next) {
		buffer_print(to, "\tif (");
		on_test(r->rule, to);
		buffer_print(to, "left_%u(run, %u) && (", r->rule->index, s->depth);
		first_test(r->rule, to);
		buffer_print(to, "))\n\t\treturn %u;\n", r->rule->index);
	}
	if (s->parent->depth)
		buffer_print(to, "\tgoto a%u;\n", s->parent->number);
	else
		buffer_print(to, "\treturn RULES_NONE;\n");
}

static void left_pick(struct unit *u, unsigned process, struct buffer *to)
{
	unsigned count;
	const struct state *s = trie_build(u, process, &count);

	buffer_print(to, "static int pick_left_%u(struct rules_run *run)\n{\n", process);
	if (count == 1)
		buffer_print(to, "\t(void)run;\n\treturn RULES_NONE;\n");
	for (; s && count > 1; s = s->next)
		state_emit(s, to);
	buffer_print(to, "}\n\n");
}

/* --- by the follower's call ------------------------------------------------------------------ */

static bool may_begin_with(const struct rule *rule, unsigned nr)
{
	for (const struct out *o = rule->outs; o; o = o->next) {
		for (const struct call *c = o->calls; c; c = c->next)
			if (c->row->nr == nr)
				return true;
		if (!o->star)
			return false;
	}
	return false;
}

static bool is_first(const struct rule *rule, enum left_kind left, unsigned process)
{
	return rule->left == left && process == !!(rule->flags & RULES_ROW_PROCESS);
}

static void first_case(struct unit *u, enum left_kind left, unsigned process, unsigned nr,
	struct buffer *to)
{
	bool any = false;

	for (unsigned i = 0; i < u->nrules; i++) {
		const struct rule *rule = u->rules[i];

		if (!is_first(rule, left, process) || !may_begin_with(rule, nr))
			continue;
		if (!any)
			buffer_print(to, "\tcase %u:\n", nr);
		any = true;
		buffer_print(to, "\t\tif (");
		on_test(rule, to);
		buffer_print(to, "(");
		first_test(rule, to);
		buffer_print(to, "))\n\t\t\treturn %u;\n", rule->index);
	}
	if (any)
		buffer_print(to, "\t\tbreak;\n");
}

static void first_pick(struct unit *u, const char *name, enum left_kind left,
	unsigned process, struct buffer *to)
{
	buffer_print(to, "static int pick_%s_%u(struct rules_run *run)\n{\n"
		"\tswitch (run->call->nr) {\n", name, process);
	for (unsigned nr = 0; nr < CALL_MAX; nr++)
		first_case(u, left, process, nr, to);
	buffer_print(to, "\tdefault:\n\t\tbreak;\n\t}\n\treturn RULES_NONE;\n}\n\n");
}

static const char dispatch[] =
	"static int pick(struct rules_run *run, enum rules_pick which)\n"
	"{\n"
	"\tif (run->scope == RULES_PROCESS)\n"
	"\t\treturn which == RULES_LEFT ? pick_left_1(run) :\n"
	"\t\t\twhich == RULES_NOTHING ? pick_nothing_1(run) : pick_begin_1(run);\n"
	"\treturn which == RULES_LEFT ? pick_left_0(run) :\n"
	"\t\twhich == RULES_NOTHING ? pick_nothing_0(run) : pick_begin_0(run);\n"
	"}\n\n";

void emit_picks(struct unit *u, struct buffer *to)
{
	for (unsigned process = 0; process < RULES_SCOPES; process++) {
		left_pick(u, process, to);
		first_pick(u, "nothing", LEFT_NOTHING, process, to);
		first_pick(u, "begin", LEFT_BEGIN, process, to);
	}
	buffer_print(to, "%s", dispatch);
}
