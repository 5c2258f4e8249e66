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

#include "engine/core/must.h"
#include "rulec/emit/emit.h"

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

/* From so many on, a list is tables and a search in them (find.h). */
#define LIST_LONG	8

/* One automaton, or the rules for first calls, as they are written. */
struct picks {
	struct unit *u;
	unsigned process;	/* enum rules_scope */
	struct find_out *finds;
	struct buffer *to;
};

static unsigned list_len(const struct rule_list *list)
{
	unsigned n = 0;

	for (; list; list = list->next)
		n++;
	return n;
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
	"static bool holds(struct rules_run *run, unsigned rule, unsigned depth)\n"
	"{\n"
	"\treturn rules_on(run, rule) && (!depth || left(run, rule, depth)) && begins(run, rule);\n"
	"}\n\n"
	"static int first_of(struct rules_run *run, unsigned list)\n"
	"{\n"
	"\tconst struct find_tables t = { find_lists, find_groups, find_keys, find_slots,\n"
	"\t\tfind_rules, find_nodes, find_kids, find_texts, holds };\n"
	"\n"
	"\treturn find_first(run, &t, list);\n"
	"}\n\n";

/* Tries the rules of a list; `then` is what is done with the one that holds. */
static void list_emit(const struct picks *p, const struct state *s, const struct rule_list *list,
	const char *then)
{
	struct find_want want = { list, s->depth, { 0 } };

	MUST(s->depth <= RULES_STEPS);

	if (list_len(list) >= LIST_LONG) {
		for (; s->depth; s = s->parent)
			want.nrs[s->depth - 1] = s->nr;
		buffer_print(p->to, "\tfound = first_of(run, %u);\n\tif (found >= 0)\n\t\t%s\n",
			find_add(p->u, p->finds, &want), then);
		return;
	}
	for (; list; list = list->next) {
		buffer_print(p->to, "\tif (");
		on_test(list->rule, p->to);
		if (s->depth)
			buffer_print(p->to, "left_%u(run, %u) && ", list->rule->index, s->depth);
		buffer_print(p->to, "(");
		first_test(list->rule, p->to);
		buffer_print(p->to, ")) {\n\t\tfound = %u;\n\t\t%s\n\t}\n", list->rule->index,
			then);
	}
}

/* --- the walk -------------------------------------------------------------- */

static void down_emit(const struct picks *p, const struct state *s)
{
	buffer_print(p->to, "\tif (rules_more(run, %u)) {\n\t\tswitch (run->ev[%u]->nr) {\n",
		s->depth, s->depth);
	for (const struct edge *e = s->edges; e; e = e->next)
		buffer_print(p->to, "\t\tcase %u: goto s%u;\n", e->nr, e->to->number);
	buffer_print(p->to, "\t\tdefault: break;\n\t\t}\n\t}");
	if (!s->depth) {
		buffer_print(p->to, "\n\treturn RULES_NONE;\n");
		return;
	}
	buffer_print(p->to, " else if (!run->expired) {\n");
	list_emit(p, s, s->through, "goto wait;");
	buffer_print(p->to, "\t}\n");
}

static bool falls_here(const struct state *s)
{
	return s->edges && s->depth;
}

static void state_emit(const struct picks *p, const struct state *s)
{
	if (s->depth)
		buffer_print(p->to, "s%u:\n", s->number);
	if (s->edges)
		down_emit(p, s);
	if (!s->depth)
		return;
	MUST(s->parent && s->parent->depth + 1 == s->depth && (s->edges || s->ends));
	if (falls_here(s))
		buffer_print(p->to, "a%u:\n", s->number);
	list_emit(p, s, s->ends, "return found;");
	if (s->parent->depth)
		buffer_print(p->to, "\tgoto a%u;\n", s->parent->number);
	else
		buffer_print(p->to, "\treturn RULES_NONE;\n");
}

static bool some_wait(const struct state *s)
{
	while (s && !falls_here(s))
		s = s->next;
	return s != NULL;
}

static void left_pick(const struct picks *p)
{
	unsigned count;
	const struct state *first = trie_build(p->u, p->process, &count);

	MUST(first && !first->depth && !first->parent);

	buffer_print(p->to, "static int pick_left_%u(struct rules_run *run)\n{\n", p->process);
	buffer_print(p->to, count == 1 ? "\t(void)run;\n\treturn RULES_NONE;\n" :
		"\tint found;\n\n");
	for (const struct state *s = first; s && count > 1; s = s->next)
		state_emit(p, s);
	if (count > 1 && some_wait(first))
		buffer_print(p->to, "wait:\n\trun->waits = (uint16_t)found;\n"
			"\treturn RULES_WAIT;\n");
	buffer_print(p->to, "}\n\n");
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

static bool is_first(const struct rule *rule, enum rules_pick which, unsigned process)
{
	enum rules_pick is = rule->left == LEFT_BEGIN ? RULES_BEGIN :
		rule->flags & RULES_ROW_FIRST ? RULES_FIRST : RULES_NOTHING;

	return rule->left != LEFT_STEPS && is == which &&
		process == !!(rule->flags & RULES_ROW_PROCESS);
}

static struct rule_list *first_list(const struct picks *p, enum rules_pick which,
	unsigned nr)
{
	struct rule_list *list = NULL, **last = &list;

	for (unsigned i = 0; i < p->u->nrules; i++) {
		struct rule *rule = p->u->rules[i];

		if (!is_first(rule, which, p->process) || !may_begin_with(rule, nr))
			continue;
		MUST(!rule->steps);
		*last = arena_alloc(p->u->arena, sizeof(**last));
		(*last)->rule = rule;
		last = &(*last)->next;
	}
	return list;
}

static void first_pick(const struct picks *p, const char *name, enum rules_pick which)
{
	static const struct state start;
	bool any = false;

	buffer_print(p->to, "static int pick_%s_%u(struct rules_run *run)\n{\n\tint found;\n\n"
		"\tswitch (run->call->nr) {\n", name, p->process);
	for (unsigned nr = 0; nr < CALL_MAX; nr++) {
		const struct rule_list *list = first_list(p, which, nr);

		if (!list)
			continue;
		any = true;
		buffer_print(p->to, "\tcase %u:\n", nr);
		list_emit(p, &start, list, "return found;");
		buffer_print(p->to, "\t\tbreak;\n");
	}
	buffer_print(p->to, "\tdefault:\n\t\tbreak;\n\t}\n\t%sreturn RULES_NONE;\n}\n\n",
		any ? "" : "(void)found;\n\t");
}

static const char dispatch[] =
	"static int pick(struct rules_run *run, enum rules_pick which)\n"
	"{\n"
	"\tbool process = run->scope == RULES_PROCESS;\n"
	"\n"
	"\tswitch (which) {\n"
	"\tcase RULES_LEFT: return process ? pick_left_1(run) : pick_left_0(run);\n"
	"\tcase RULES_NOTHING: return process ? pick_nothing_1(run) : pick_nothing_0(run);\n"
	"\tcase RULES_BEGIN: return process ? pick_begin_1(run) : pick_begin_0(run);\n"
	"\tcase RULES_FIRST: return process ? pick_first_1(run) : pick_first_0(run);\n"
	"\t}\n"
	"\treturn RULES_NONE;\n"
	"}\n\n";

void emit_picks(struct unit *u, struct buffer *to)
{
	struct find_out finds = { 0 };
	struct buffer text = { 0 };

	for (unsigned process = 0; process < RULES_SCOPES; process++) {
		const struct picks p = { u, process, &finds, &text };

		left_pick(&p);
		first_pick(&p, "nothing", RULES_NOTHING);
		first_pick(&p, "begin", RULES_BEGIN);
		first_pick(&p, "first", RULES_FIRST);
	}
	find_print(&finds, to);
	buffer_print(to, "%s", loops);
	buffer_add(to, text.at, text.len);
	buffer_print(to, "%s", dispatch);
	free(text.at);
}
