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
		buffer_print(to, "fits_%u(run) || ", o->fits);
	if (o)
		buffer_print(to, "fits_%u(run)", o->fits);
	else
		buffer_print(to, "true");
}

static void on_test(const struct rule *rule, struct buffer *to)
{
	if (rule_may_be_off(rule))
		buffer_print(to, "rules_on(run, %u) && ", rule->index);
}

/* --- lists of rules -------------------------------------------------------- */

/* From so many on a list is an array and a loop: compilers are slow with long
 * functions, and so many comparisons are slow anyway. */
#define LIST_LONG	8

static unsigned list_len(const struct rule_list *list)
{
	unsigned n = 0;

	for (; list; list = list->next)
		n++;
	return n;
}

static void array_emit(const char *name, unsigned process, const struct state *s,
	const struct rule_list *list, struct buffer *to)
{
	unsigned n = 0;

	if (list_len(list) < LIST_LONG)
		return;
	buffer_print(to, "static const uint16_t %s_%u_%u[] = {", name, process, s->number);
	for (; list; list = list->next, n++)
		buffer_print(to, "%s%u,", n % 12 ? " " : "\n\t", list->rule->index);
	buffer_print(to, "\n};\n\n");
}

static const char loops[] =
	"static bool begins(struct rules_run *run, unsigned rule)\n"
	"{\n"
	"\tconst struct rules_row *row = &rows[rule];\n"
	"\n"
	"\tfor (unsigned out = row->first_out; out < row->first_out + row->outs; out++) {\n"
	"\t\tif (fits(run, out))\n"
	"\t\t\treturn true;\n"
	"\t\tif (!(outs[out].flags & RULES_OUT_STAR))\n"
	"\t\t\treturn false;\n"
	"\t}\n"
	"\treturn true;\n"
	"}\n\n"
	"static int first_of(struct rules_run *run, const uint16_t *list, unsigned n,\n"
	"\tunsigned depth)\n"
	"{\n"
	"\tfor (unsigned i = 0; i < n; i++)\n"
	"\t\tif (rules_on(run, list[i]) && left(run, list[i], depth) && begins(run, list[i]))\n"
	"\t\t\treturn list[i];\n"
	"\treturn RULES_NONE;\n"
	"}\n\n";

/* Tries the rules of a list; `then` is what is done with the one that holds. */
static void list_emit(const char *name, unsigned process, const struct state *s,
	const struct rule_list *list, const char *then, struct buffer *to)
{
	if (list_len(list) >= LIST_LONG) {
		buffer_print(to, "\tfound = first_of(run, %s_%u_%u, %u, %u);\n"
			"\tif (found >= 0)\n\t\t%s\n", name, process, s->number, list_len(list),
			s->depth, then);
		return;
	}
	for (; list; list = list->next) {
		buffer_print(to, "\tif (");
		on_test(list->rule, to);
		buffer_print(to, "left_%u(run, %u) && (", list->rule->index, s->depth);
		first_test(list->rule, to);
		buffer_print(to, ")) {\n\t\tfound = %u;\n\t\t%s\n\t}\n", list->rule->index,
			then);
	}
}

/* --- the walk -------------------------------------------------------------- */

static void down_emit(const struct state *s, unsigned process, struct buffer *to)
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
	list_emit("through", process, s, s->through, "goto wait;", to);
	buffer_print(to, "\t}\n");
}

static bool falls_here(const struct state *s)
{
	return s->edges && s->depth;
}

static void state_emit(const struct state *s, unsigned process, struct buffer *to)
{
	if (s->depth)
		buffer_print(to, "s%u:\n", s->number);
	if (s->edges)
		down_emit(s, process, to);
	if (!s->depth)
		return;
	if (falls_here(s))
		buffer_print(to, "a%u:\n", s->number);
	list_emit("ends", process, s, s->ends, "return found;", to);
	if (s->parent->depth)
		buffer_print(to, "\tgoto a%u;\n", s->parent->number);
	else
		buffer_print(to, "\treturn RULES_NONE;\n");
}

static bool some_wait(const struct state *s)
{
	while (s && !falls_here(s))
		s = s->next;
	return s != NULL;
}

static void left_pick(struct unit *u, unsigned process, struct buffer *to)
{
	unsigned count;
	const struct state *first = trie_build(u, process, &count);

	for (const struct state *s = first; s; s = s->next) {
		array_emit("through", process, s, s->through, to);
		array_emit("ends", process, s, s->ends, to);
	}
	buffer_print(to, "static int pick_left_%u(struct rules_run *run)\n{\n", process);
	buffer_print(to, count == 1 ? "\t(void)run;\n\treturn RULES_NONE;\n" :
		"\tint found;\n\n");
	for (const struct state *s = first; s && count > 1; s = s->next)
		state_emit(s, process, to);
	if (count > 1 && some_wait(first))
		buffer_print(to, "wait:\n\trun->waits = (uint16_t)found;\n"
			"\treturn RULES_WAIT;\n");
	buffer_print(to, "}\n\n");
}

/* --- by the follower's call ------------------------------------------------ */

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
	buffer_print(to, "%s", loops);
	for (unsigned process = 0; process < RULES_SCOPES; process++) {
		left_pick(u, process, to);
		first_pick(u, "nothing", LEFT_NOTHING, process, to);
		first_pick(u, "begin", LEFT_BEGIN, process, to);
	}
	buffer_print(to, "%s", dispatch);
}
