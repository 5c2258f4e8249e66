/*
 * The automaton over the numbers of calls: a state for every sequence of calls
 * that some left side begins with.  Rules that begin alike share its states.
 *
 * A left side without alternatives is one path; groups and alternatives are many,
 * so the number of states is bounded.
 */
#include <string.h>

#include "engine/core/must.h"
#include "rulec/rulec.h"

struct builder {
	struct unit *u;
	struct state *first, **last;
	unsigned count;
	bool full;
};

static struct state *state_new(struct builder *b, struct state *parent)
{
	struct state *s = arena_alloc(b->u->arena, sizeof(*s));

	MUST(!*b->last && (!parent || parent->number < b->count));

	s->parent = parent;
	s->depth = parent ? parent->depth + 1 : 0;
	s->number = b->count++;
	*b->last = s;
	b->last = &s->next;
	b->full = b->count > STATES_MAX;
	return s;
}

/* The state behind a call; edges are in the order of numbers. */
static struct state *state_follow(struct builder *b, struct state *from, unsigned nr)
{
	struct edge **at = &from->edges, *e;

	while (*at && (*at)->nr < nr)
		at = &(*at)->next;
	if (*at && (*at)->nr == nr)
		return (*at)->to;
	e = arena_alloc(b->u->arena, sizeof(*e));
	e->nr = nr;
	e->next = *at;
	*at = e;
	e->to = state_new(b, from);
	e->to->nr = nr;
	return e->to;
}

/* Rules are added in order, so a rule that is there already is the last. */
static void list_add(struct builder *b, struct rule_list **list, struct rule *rule)
{
	struct rule_list *node;

	while (*list) {
		if ((*list)->rule == rule)
			return;
		list = &(*list)->next;
	}
	node = arena_alloc(b->u->arena, sizeof(*node));
	node->rule = rule;
	*list = node;
}

/* Several alternatives may be the same call with other arguments. */
static bool seen_before(const struct call *first, const struct call *c)
{
	while (first != c && first->row->nr != c->row->nr)
		first = first->next;
	return first != c;
}

/* Bounded by RULES_STEPS, which is the longest left side. */
static void path_add(struct builder *b, struct state *from, struct rule *rule,
	const struct step *step)
{
	MUST(from->depth <= RULES_STEPS && (!step || step->index == from->depth));
	if (!step) {
		list_add(b, &from->ends, rule);
		return;
	}
	if (from->parent)
		list_add(b, &from->through, rule);
	for (const struct call *c = step->calls; c && !b->full; c = c->next)
		if (!seen_before(step->calls, c))
			path_add(b, state_follow(b, from, c->row->nr), rule, step->next);
}

/* What the printed automaton relies on: numbers in order, edges sorted, no end that is none. */
static void states_hold(const struct builder *b)
{
	unsigned n = 0;

	for (const struct state *s = b->first; s; s = s->next, n++) {
		MUST(s->number == n && s->depth <= RULES_STEPS);
		MUST(b->full || !s->parent || s->edges || s->ends);
		MUST(!s->parent == !s->depth && (s->parent || !s->through));
		for (const struct edge *e = s->edges; e; e = e->next) {
			MUST(e->to->parent == s && e->to->nr == e->nr && e->nr < CALL_MAX);
			MUST(!e->next || e->nr < e->next->nr);
		}
	}
	MUST(n == b->count);
}

struct state *trie_build(struct unit *u, bool process, unsigned *count)
{
	struct builder b = { .u = u };

	b.last = &b.first;
	state_new(&b, NULL);
	for (unsigned i = 0; i < u->nrules; i++) {
		struct rule *rule = u->rules[i];

		if (rule->left != LEFT_STEPS || rule->broken ||
		    process != !!(rule->flags & RULES_ROW_PROCESS))
			continue;
		path_add(&b, b.first, rule, rule->steps);
		if (b.full) {
			diag_error(u, rule->left_loc, "the rules need more than %d states",
				STATES_MAX);
			break;
		}
	}
	states_hold(&b);
	*count = b.count;
	return b.first;
}

/* --- as a picture ---------------------------------------------------------- */

static void label_print(struct buffer *to, const struct unit *u, const struct rule *rule)
{
	if (rule->name)
		buffer_print(to, "%s", rule->name);
	else
		buffer_print(to, "line %u", diag_line(u, rule->left_loc));
}

static void state_print(struct buffer *to, const struct unit *u, const struct state *s,
	const char *scope)
{
	buffer_print(to, "\t%s%u [shape=%s, label=\"", scope, s->number,
		s->ends ? "doublecircle" : "circle");
	for (const struct rule_list *r = s->ends; r; r = r->next) {
		label_print(to, u, r->rule);
		buffer_print(to, r->next ? "\\n" : "");
	}
	buffer_print(to, "\"];\n");
	for (const struct edge *e = s->edges; e; e = e->next)
		buffer_print(to, "\t%s%u -> %s%u [label=\"%s\"];\n", scope, s->number, scope,
			e->to->number, call_find(e->nr)->name);
}

/* `begin` and `nothing`: by the follower's calls. */
static void first_calls_print(struct buffer *to, const struct unit *u)
{
	for (unsigned i = 0; i < u->nrules; i++) {
		const struct rule *r = u->rules[i];

		if (r->left == LEFT_STEPS)
			continue;
		buffer_print(to, "\trule%u [shape=box, label=\"", i);
		label_print(to, u, r);
		buffer_print(to, "\"];\n\t%s -> rule%u [label=\"%s\", style=dashed];\n",
			r->left == LEFT_BEGIN ? "begin" : "nothing", i, r->outs->call->name);
	}
}

void pass_graph(struct unit *u, struct buffer *to)
{
	static const char *const scopes[] = { "s", "p" };
	unsigned count;

	buffer_print(to, "digraph rules {\n\trankdir=LR;\n\tnode [fontname=monospace];\n");
	for (unsigned process = 0; process < RULES_SCOPES; process++) {
		const struct state *s = trie_build(u, process, &count);

		for (; s && count > 1; s = s->next)
			state_print(to, u, s, scopes[process]);
	}
	first_calls_print(to, u);
	buffer_print(to, "}\n");
}
