/*
 * What a rules file is, as the parser makes it and the passes fill it in.
 *
 * All of it lives in the arena of a struct unit and is freed with it.  A place
 * in the text (struct loc) is a file and two byte offsets; diag.c turns it into
 * lines and columns.  Lists are linked by `next`, in the order of the text.
 *
 * Fields under "resolved" are written by resolve.c and check.c; nobody changes
 * a node after that.
 */
#ifndef RULEC_AST_H
#define RULEC_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/abi/rules.h"
#include "engine/abi/table.h"

struct loc {
	uint32_t file;
	uint32_t begin;
	uint32_t end;
};

struct text {
	const char *at;
	size_t len;
};

/* --- patterns -------------------------------------------------------------- */

enum pattern_kind { PATTERN_STRING, PATTERN_REGEX, PATTERN_NAME };

/* A named or written-out pattern of a buffer's content; `next`: or this one. */
struct pattern {
	struct pattern *next;
	struct loc loc;
	enum pattern_kind kind;
	struct text raw;	/* as written, without quotes or slashes */
	struct text bytes;	/* a string's content */
	bool prefix;		/* it ended in `…` */
	bool fold;		/* a regular expression's flag i */
	/* resolved */
	const struct let *let;
	struct regex *regex;
};

struct let {
	struct let *next;
	struct loc loc, name_loc;
	const char *name;
	struct pattern *pattern;
	bool visiting, done;
	unsigned size;
};

enum arg_form { ARG_ANY, ARG_NULL, ARG_NAME, ARG_STRING, ARG_NUMBER, ARG_PATTERN };

struct arg {
	struct arg *next;
	struct loc loc;
	enum arg_form form;
	const char *name;
	int64_t number;
	struct text raw;	/* a number as written */
	struct pattern *pattern;	/* ARG_STRING, ARG_PATTERN */
};

/* --- calls ----------------------------------------------------------------- */

struct call {
	struct call *next;	/* the next alternative */
	struct loc loc, name_loc;
	const char *name;
	struct arg *args;
	bool bare;		/* only one `_`: all arguments are free */
	/* resolved */
	const struct call_name *row;	/* NULL: a group, a label, or unknown */
	const struct group *group;
};

struct group {
	struct group *next;
	struct loc loc, name_loc;
	const char *name;
	struct call *calls;
};

struct code {
	struct loc loc;
	struct text text;	/* with its braces */
};

/* --- rules ----------------------------------------------------------------- */

/* Where a name's value comes from. */
enum bind_kind {
	BIND_EVENT,		/* an argument of a call of the left side */
	BIND_EVENT_RET,
	BIND_OWN,		/* an argument of the follower's call */
	BIND_OWN_RET,		/* what the follower's call gave */
	BIND_VIEW,		/* a view that C or a pattern filled */
};

struct binding {
	struct binding *next, *next_kept;
	const char *name;
	struct loc loc;
	enum bind_kind kind;
	bool view;		/* memory, not a number */
	unsigned at;		/* step of the left, or out of the right */
	unsigned slot;		/* of view[] or num[] in rules_state */
	bool kept;		/* has a slot of num[] */
	uint8_t arg[RULES_OUTS];	/* which argument, by alternative */
	unsigned alts;
};

struct step {
	struct step *next;
	struct loc loc;
	struct call *alts;	/* as written */
	struct code *guard;
	const char *label;
	struct loc label_loc;
	/* resolved */
	struct call *calls;	/* groups unfolded: each has a row */
	unsigned ncalls;
	unsigned index;
	unsigned guard_same;	/* emit.c's: the number of equal guards, */
	bool guard_shared;	/* if there are others */
};

struct out {
	struct out *next;
	struct loc loc;
	struct call *call;
	bool has_args;
	bool star;
	struct code *guard;	/* of a label without `->`: its action */
	struct code *action;
	const char *result;	/* -> (ID) */
	struct loc result_loc;
	/* resolved */
	struct binding *kept;	/* numbers of this call that a later one needs */
	struct step *label;	/* the call that is replayed */
	struct step *match;	/* the call that it is a match of, or the label's */
	struct call *calls;
	unsigned ncalls;
	unsigned index;		/* in its rule */
	unsigned number;	/* in the object */
	unsigned fits;		/* the out whose test is the same */
	enum rules_out_kind kind;
	unsigned flags;		/* enum rules_out_flags */
	unsigned compare;
};

struct attr {
	struct attr *next;
	struct loc loc, value_loc;
	const char *name;
	const char *value;	/* NULL: none */
};

enum left_kind { LEFT_STEPS, LEFT_BEGIN, LEFT_NOTHING };

struct rule {
	struct rule *next;
	struct loc loc, name_loc, left_loc, right_loc;
	const char *name;	/* NULL: none was given */
	struct attr *attrs;
	enum left_kind left;
	struct step *steps;
	struct out *outs;	/* NULL: nothing */
	struct out *drop;	/* behind `nothing`: an action, and no call */
	/* resolved */
	struct binding *bindings;
	unsigned nsteps, nouts, nviews, nnums;
	unsigned index;		/* in the object */
	unsigned flags;		/* enum rules_row_flags */
	unsigned within_ms, within_events;
	const char *leader, *follower;
	const struct rule *then;
	bool guarded;		/* some guard on the left */
	bool broken;		/* has an error: later passes leave it */
};

/* What an object has rows for: its right side, or the action behind `nothing`. */
static inline struct out *rule_outs(const struct rule *rule)
{
	return rule->outs ? rule->outs : rule->drop;
}

/* --- files ----------------------------------------------------------------- */

/* How a live update changes a type or a variable: for mve-xform, and no rule (engine/xform). */
struct transform {
	const char *kind;	/* struct, union, enum, variable, thread; NULL: a typedef's name */
	const char *name;
	struct loc name_loc;
	struct code *body;
};

enum item_kind { ITEM_INCLUDE, ITEM_USE, ITEM_GROUP, ITEM_LET, ITEM_RULE, ITEM_TRANSFORM };

struct item {
	struct item *next;
	struct loc loc;
	enum item_kind kind;
	struct text path;	/* include, use */
	struct group *group;
	struct let *let;
	struct rule *rule;
	struct transform *transform;
};

struct comment {
	struct comment *next;
	struct loc loc;
};

struct source {
	const char *path;	/* as messages show it */
	const char *text;
	size_t len;
	struct item *items;
	struct comment *comments;
	bool bad;		/* did not parse */
};

#define SOURCES_MAX	256

/* One compilation: everything that the passes share. */
struct unit {
	struct arena *arena;
	struct diag *diags;
	unsigned errors, warnings;
	bool shaky;		/* an error in what rules stand on: lets, groups, names */
	struct source sources[SOURCES_MAX];
	unsigned nsources;
	/* resolved */
	struct rule **rules;	/* by index: a file's own before those it uses */
	unsigned nrules, nouts;
	struct group *groups;
	struct let *lets;
	struct regex *regexes;
	unsigned flags;		/* enum rules_object_flags */
	struct seen **seen;	/* emit.c's: functions by their text */
	unsigned constants;	/* constant.c's: names of C looked at */
	unsigned guards;	/* emit_rule.c's: different ones, so far; */
	bool *guard_emitted;	/* those that have a function */
	struct want *wants, **wants_end;	/* emit.c's: texts for reports, */
	unsigned wanted;	/* and their bytes so far */
	const char *debug;	/* -d PASS */
	bool strict;		/* -W: warnings are errors */
};

/* Constructors for the grammar's actions: the place comes first. */
struct parse;
struct pattern *ast_text(struct loc loc, struct unit *u, struct text raw);
struct pattern *ast_string(struct loc loc, struct parse *p, struct text raw);
struct pattern *ast_regex(struct loc loc, struct parse *p, struct text raw);
struct pattern *ast_pattern_name(struct loc loc, struct parse *p, const char *name);
struct arg *ast_arg(struct loc loc, struct parse *p, enum arg_form form);
struct arg *ast_arg_name(struct loc loc, struct parse *p, const char *name);
/* `A|B`: one more name of a constant. */
struct arg *ast_arg_or(struct loc loc, struct parse *p, struct arg *arg, const char *name);
struct arg *ast_arg_number(struct loc loc, struct parse *p, struct text raw);
struct arg *ast_arg_pattern(struct loc loc, struct parse *p, enum arg_form form,
	struct pattern *pattern);
struct call *ast_call(struct loc loc, struct parse *p, struct loc name_loc,
	const char *name, struct arg *args);
struct code *ast_code(struct loc loc, struct parse *p, struct text text);
struct step *ast_step(struct loc loc, struct parse *p, struct call *alts, struct code *guard);
struct step *ast_step_label(struct loc loc, struct step *step, struct loc label_loc,
	const char *label);
struct out *ast_out(struct loc loc, struct parse *p, struct call *call, bool has_args,
	struct code *guard);
struct out *ast_out_action(struct loc loc, struct out *out, struct loc result_loc,
	const char *result, struct code *action);
struct out *ast_out_star(struct loc loc, struct out *out);
struct attr *ast_attr(struct loc loc, struct parse *p, const char *name, struct loc value_loc,
	const char *value);
struct rule *ast_rule(struct loc loc, struct parse *p, struct rule *left, struct loc right_loc,
	struct out *outs);
struct rule *ast_left(struct loc loc, struct parse *p, enum left_kind kind, struct step *steps);
struct rule *ast_rule_head(struct loc loc, struct rule *rule, struct loc name_loc,
	const char *name, struct attr *attrs);
struct item *ast_item(struct loc loc, struct parse *p, enum item_kind kind);
struct item *ast_item_path(struct loc loc, struct parse *p, enum item_kind kind,
	struct text path);
struct item *ast_item_group(struct loc loc, struct parse *p, struct loc name_loc,
	const char *name, struct call *calls);
struct item *ast_item_let(struct loc loc, struct parse *p, struct loc name_loc,
	const char *name, struct pattern *pattern);
struct item *ast_item_rule(struct loc loc, struct parse *p, struct rule *rule);
struct item *ast_item_transform(struct loc loc, struct parse *p, const char *kind,
	struct loc name_loc, const char *name, struct code *body);
void ast_comment(struct loc loc, struct parse *p);

#define LIST_APPEND(type, list, node) do { \
	type **end_ = &(list); \
	while (*end_) \
		end_ = &(*end_)->next; \
	*end_ = (node); \
} while (0)

#endif
