/*
 * What the files that write C share: expressions for the values of arguments
 * and names (emit_value.c), one rule's functions (emit_rule.c), the automaton
 * (emit_pick.c), tables and the whole (emit.c).
 *
 * The C is the same byte for byte for the same input: nothing here depends on
 * an address, a clock, or the environment.
 */
#ifndef RULEC_EMIT_H
#define RULEC_EMIT_H

#include "rulec/rulec.h"

/* Where a call's arguments come from: event `step`, or the follower's own. */
struct origin {
	bool own;
	unsigned step;
};

void emit_bytes(struct buffer *to, struct text bytes);	/* a C string */
void emit_number(struct buffer *to, int64_t n);
void emit_arg_value(struct buffer *to, const struct call_name *row, unsigned i,
	struct origin from);
void emit_arg_bytes(struct buffer *to, unsigned i, struct origin from);
/* How wide an argument is (enum find_width), and a literal as it has it. */
unsigned emit_width(const struct call_name *row, unsigned i);
int64_t emit_narrow(const struct call_name *row, unsigned i, int64_t n);
/* The value that a name has at a place; which argument it is. */
void emit_value(struct buffer *to, const struct place *at, const struct binding *b);
void emit_arg_index(struct buffer *to, const struct place *at, const struct binding *b);
/* True when argument `a` of a call holds; false: there is nothing to ask. */
bool emit_arg_test(struct buffer *to, struct unit *u, const struct place *at,
	const struct call *c, const struct arg *a, unsigned i);
/* True when the call's number, and variant, is the row's. */
void emit_row_test(struct buffer *to, const struct call *c, struct origin from);

void emit_place(struct unit *u, const struct rule *rule, const struct code *code,
	struct buffer *to);
/* Finds the guards that are equal; before emit_rule(). */
void emit_guards(struct unit *u);
void emit_rule(struct unit *u, struct rule *rule, struct buffer *to);
void emit_picks(struct unit *u, struct buffer *to);
/* Tables for long lists (find.h), as they grow; find_print() ends them. */
struct find_out {
	struct buffer groups, keys, slots, rules, nodes, kids, texts, lists;
	unsigned ngroups, nkeys, nslots, nrules, nnodes, nkids, ntexts, nlists;
};

/* A list of rules whose first `depth` calls have these numbers. */
struct find_want {
	const struct rule_list *list;
	unsigned depth;
	unsigned nrs[RULES_STEPS];
};

/* The number of its tables. */
unsigned find_add(struct unit *u, struct find_out *to, const struct find_want *want);
void find_print(struct find_out *f, struct buffer *to);

bool rule_may_be_off(const struct rule *rule);
/* The number of a text of what a rule has at a place; frees it. */
unsigned want_add(struct unit *u, struct buffer *text);
/* Where a source's path lies in the object's text. */
unsigned text_file(const struct unit *u, unsigned file);

#endif
