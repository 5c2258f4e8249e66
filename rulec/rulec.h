/*
 * What the passes of rulec offer each other; main.c is the list of passes.
 * Every pass takes the unit, reports through diag_*, and goes on where it can:
 * a rule with an error is `broken`, and left by the next; unit->shaky says that
 * there is an error in what all rules stand on.
 */
#ifndef RULEC_RULEC_H
#define RULEC_RULEC_H

#include <stdio.h>

#include "rulec/read/ast.h"

/* Exit status, as everywhere in mve. */
enum { EXIT_OK, EXIT_NO, EXIT_USAGE, EXIT_SYSTEM, EXIT_BUG = 70 };

/* --- arena.c: memory that is freed at once, and growing text --------------- */

struct arena *arena_new(void);
void arena_free(struct arena *arena);
void *arena_alloc(struct arena *arena, size_t size);	/* zeroed; never NULL */
char *arena_copy(struct arena *arena, const char *text, size_t len);
char *arena_format(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Text that grows; free(b->at) when done. */
struct buffer {
	char *at;
	size_t len, size;
};

void buffer_add(struct buffer *b, const char *text, size_t len);
void buffer_print(struct buffer *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* --- diag.c: messages are queued, sorted and printed with their place ------ */

enum diag_level { DIAG_ERROR, DIAG_WARNING };

struct diag *diag_error(struct unit *u, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct diag *diag_warning(struct unit *u, struct loc loc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* More for the same message: a second place, a hint. `d` may be NULL. */
void diag_second(struct unit *u, struct diag *d, struct loc loc);
void diag_hint(struct unit *u, struct diag *d, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void diag_print(struct unit *u, FILE *to);
unsigned diag_line(const struct unit *u, struct loc loc);
unsigned diag_column(const struct unit *u, struct loc loc);	/* in bytes, from 1 */

/* --- source.c: files ------------------------------------------------------- */

/* Reads and parses a file and all that it uses; false: it cannot be read. */
bool source_load(struct unit *u, const char *path);
/* The same for text in memory. */
void source_load_text(struct unit *u, const char *path, const char *text, size_t len);
/* Reads a whole file into the arena; NULL and errno if it cannot. */
char *file_read(struct arena *arena, const char *path, size_t *len);
/* Writes a file by a temporary one and a rename; 0 or -errno. */
int file_write(const char *path, const char *text, size_t len);
const char *path_folder(struct arena *arena, const char *path);
/* rules/lib, wherever this program stands. */
const char *path_library(struct arena *arena);

/* --- parse.c, grammar/ ----------------------------------------------------- */

void parse_source(struct unit *u, unsigned file);

/* --- names.c: the system-call table by name -------------------------------- */

struct call_name {
	const char *name;
	struct call_desc desc;	/* its row */
	uint16_t nr;
	uint8_t variant;	/* chosen by an argument ... */
	uint8_t arg;
	uint64_t mask, value;	/* ... (args[arg] & mask) == value */
};

/* NULL: no such call. `many` says that several variants are called so. */
const struct call_name *name_find(const char *name, bool *many);
/* The known name that is most like this one; NULL: none is. */
const char *name_nearest(const struct unit *u, const char *name);
const char *nearest_of(const char *name, const char *const *names, unsigned n);
const struct call_name *name_table(unsigned *n);
/*
 * What an executed call is: enum rules_out_flags, or -1: it has an effect.
 * NAME_GUARDED: only on a descriptor that the rule names and a guard looks at.
 */
#define NAME_GUARDED	0x100
int name_effect(const struct call_name *row);
/* Arguments by kind. */
bool arg_is_memory(const struct arg_desc *arg);
/* The leader's event holds its content. */
bool arg_is_recorded(const struct call_name *row, unsigned arg);
/* The buffer that counts its result in argument `arg`, -1: none does. */
int arg_counts_result_of(const struct call_name *row, unsigned arg);

/* --- constant.c ------------------------------------------------------------ */

/* A name in capitals, of an argument whose values have names. */
bool constant_meant(const struct arg_desc *arg, const char *name);
/* Puts its value in its place. */
void constant_resolve(struct unit *u, struct arg *a, const struct arg_desc *arg);
/* #define for the constants that C uses, once each. */
void constants_define(struct unit *u, const struct code *code, struct buffer *to);
/* emit.c: the number that was given with this text the first time. */
unsigned text_first(struct unit *u, const char *text, unsigned number);

/* --- resolve.c, check.c, overlap.c ----------------------------------------- */

/* For each rule that no pass has found an error in; one found now breaks it. */
void rules_each(struct unit *u, void (*pass)(struct unit *u, struct rule *rule));
void pass_resolve(struct unit *u);
void pass_bind(struct unit *u);
void pass_check(struct unit *u);
void pass_overlap(struct unit *u);
/* tree.c: behind each pass; a tree that does not hold ends the program, as our bug. */
void tree_holds(struct unit *u);

/* --- bind.c: names in rules ------------------------------------------------ */

/* Where a piece of C, or a pattern, stands: a step of the left, or an out. */
struct place {
	struct rule *rule;
	struct step *step;
	struct out *out;
	bool action;
};

struct binding *bind_find(const struct rule *rule, const char *name);
/* What a name in C means there: also `ret` and `label.name`; NULL: nothing. */
struct binding *bind_use(struct unit *u, const struct place *at, const char *name);
/* The name is the very argument of the event that this out is a match of. */
bool bind_is_matched(const struct binding *b, const struct out *out, unsigned arg);
bool bind_has_arg(const struct binding *b, unsigned alt, unsigned arg);

/* A string on the right for memory that the call fills: what the follower gets. */
bool out_gives(const struct out *o, const struct call *c, const struct arg *a, unsigned i);
/* Argument i counts such a string. */
bool out_counts_given(const struct out *o, const struct call *c, unsigned i);

/* --- cblock.c: C in guards and actions ------------------------------------- */

/* One look at each use of a name in C: `$(x)`, whether it is assigned. */
struct c_use {
	struct c_use *next;
	struct loc loc;
	const char *name;	/* x, or label.x */
	bool assigned;
	bool fills;		/* (x, y) = f(...) */
};

struct c_use *cblock_uses(struct unit *u, const struct code *code);
/* Appends the block as C, in the same columns as far as possible. */
void cblock_emit(struct unit *u, const struct place *at, const struct code *code,
	struct buffer *to);
/* Brackets are paired; else an error has been reported. */
bool cblock_brackets(struct unit *u, const struct code *code);
/* `return` stands in it; without one, a guard is an expression. */
bool cblock_returns(struct unit *u, const struct code *code);

/* --- regex.c --------------------------------------------------------------- */

#define REGEX_GROUPS	16

struct regex {
	struct regex *next;
	struct loc loc;
	unsigned number;
	struct text raw;	/* as it was written first, and its flag i */
	bool fold;
	struct buffer re2c;	/* while it is read */
	const char *text;	/* the expression in re2c's words */
	bool from_start, to_end;
	const char *group[REGEX_GROUPS];	/* NULL: a group without a name */
	unsigned ngroups;
};

/* Parses and keeps a regular expression; NULL after an error. */
struct regex *regex_new(struct unit *u, const struct pattern *pattern);
/* A text that everything begins with that it matches; often there is none. */
struct text regex_head(const struct pattern *pattern);
/* All expressions as functions, in the language of re2c. */
void regex_emit(const struct unit *u, struct buffer *to);

/* --- trie.c, emit.c; find.h has the search in long lists ------------------------------ */

/* A state of the automaton: which rules begin with the calls that lead here. */
struct state {
	struct state *next;		/* of all, in order of number */
	struct state *parent;
	struct edge *edges;
	struct rule_list *ends;		/* left sides that end here */
	struct rule_list *through;	/* ... that go on from here */
	unsigned number, depth;
	unsigned nr;			/* of the call that leads here */
};

struct edge {
	struct edge *next;
	unsigned nr;
	struct state *to;
};

struct rule_list {
	struct rule_list *next;
	struct rule *rule;
};

#define STATES_MAX	65536

struct state *trie_build(struct unit *u, bool process, unsigned *count);
void pass_graph(struct unit *u, struct buffer *to);
/* The C of rules: what comes before regular expressions, and behind them. */
void pass_emit_head(const struct unit *u, struct buffer *to);
void pass_emit(struct unit *u, struct buffer *to);
/* `#line N "path"` */
void emit_line(struct buffer *to, unsigned line, const char *path);

/* --- build.c: re2c and the C compiler -------------------------------------- */

/* The C of a unit, complete; NULL after an error. */
char *build_c(struct unit *u, size_t *len);
/* The object at `path`; false after an error.  NULL: it is made, and thrown away. */
bool build_object(struct unit *u, const char *path);

/* --- commands -------------------------------------------------------------- */

void fmt_print(struct unit *u, const struct source *source, struct buffer *to);
void fmt_arg(struct buffer *b, const struct arg *a);
void fmt_call(struct buffer *b, const struct call *c, bool has_args);
int command_test(struct unit *u, int argc, char **argv);
int command_explain(struct unit *u, const char *events, const char *calls,
	const char *stage);

#endif
