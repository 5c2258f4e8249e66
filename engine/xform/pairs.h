/*
 * Pairs of types, and what the transform file says of them.
 */
#ifndef MVE_XFORM_PAIRS_H
#define MVE_XFORM_PAIRS_H

#include "engine/xform/builds.h"

enum line_kind {
	LINE_VALUE,	/* path = C; */
	LINE_FROM,	/* path from path; */
	LINE_LIVE,	/* path if C; */
	LINE_TYPE,	/* path : struct name[.member] [if C]; */
	LINE_OPAQUE,	/* path : opaque; */
};

/* One line of a transform's body. */
struct line {
	struct line *next;
	enum line_kind kind;
	const char *path;	/* "": of a variable or a thread as a whole */
	struct loc loc, value_loc, if_loc;
	const char *value;	/* C; the other path */
	bool block;		/* the C stands in braces */
	const char *condition;	/* NULL: always */
	const char *type_kind, *type_name, *member;
	unsigned number;	/* of its functions in C */
	bool used;
};

/* A transform of the file with its lines. */
struct change {
	struct change *next;
	const struct transform *transform;
	struct line *lines;
	const struct type *old, *new;	/* NULL: of a variable, a thread */
	bool used;
};

struct row {
	struct row *next;
	const char *name;
	uint64_t from, to;
	struct pair *pair;
	const struct line *live;
	bool flexible;
};

struct pair {
	struct pair *next;
	const struct type *old, *new;
	unsigned number;
	enum xform_kind kind;
	bool moves, still;
	struct pair *to;
	uint64_t inside;	/* of a pointer: where in `to` it leads */
	struct row *rows;
	struct change *change;
	bool bits;		/* it has bit-fields, which C copies, */
	bool bits_moved;	/* ... to another place */
	bool broken;
};

struct pairing {
	struct unit *u;
	struct build *old, *new;
	struct change *changes;
	struct pair *pairs, **end;
	unsigned npairs, nlines;
	bool code_only;
	struct pair_variable {
		struct pair_variable *next;
		const struct variable *old, *new;
		struct pair *pair;
		struct change *change;
		bool unlike;	/* where only code changed: this one did as well */
	} *variables;
	struct pair_local {
		struct pair_local *next;
		const struct local *new;
		struct pair *pair;
	} *locals;
	struct pair_thread {
		struct pair_thread *next;
		const char *function;
		struct pair *pair;
	} *threads;
};

/* A field as it is called from its structure: through what has no name, into unions. */
struct flat {
	struct flat *next;
	const char *name;
	const struct field *field;
	const struct type *type;
	uint64_t at;
	const struct field *in_union;
};

/* lines.c: the bodies; then each is looked up in both builds. */
void lines_read(struct pairing *p);
struct line *line_find(struct change *c, const char *path, enum line_kind kind);
/* pair.c: everything that both builds have. */
void pairs_make(struct pairing *p);
/* alike.c: the same where nothing but code changed; what did is an error. */
void alike_make(struct pairing *p);
struct pair *pair_of(struct pairing *p, const struct type *old, const struct type *new);
/* Fields and variables that differ so that only a person can say what becomes of them; `how`. */
struct pair *pair_unlike(struct pairing *p, const char *what, const char *how,
	struct place_in old, struct place_in new, const struct type *a, const struct type *b);
/* roots.c: the old variable of this one; NULL: there is none. */
const struct variable *variable_partner(const struct build *old, const struct variable *new);
const struct local *local_partner(const struct build *old, const struct local *new);
/* pair_fields.c: the rows of two structures. */
void fields_pair(struct pairing *p, struct pair *pair);
struct flat *fields_flat(struct pairing *p, const struct type *t, const struct change *c);
/* What a line says that a pointer leads to. */
/* `name` is no type of one of the builds, or of both: said, with what was meant perhaps. */
void type_missing(struct pairing *p, struct loc loc, const char *kind, const char *name,
	const struct type *old, const struct type *new);
struct pair *pair_said(struct pairing *p, struct line *l, uint64_t *inside);
bool fields_moves(struct pair *pair);	/* looks again; true: it is another now */
bool from_system(const struct type *t);
bool type_same(const struct type *a, const struct type *b);
bool holds_pointer(const struct type *t);

/* emit.c, emit_types.c, compile.c */
void emit_c(struct pairing *p, struct buffer *to);
void emit_types(struct pairing *p, const struct build *b, struct buffer *to);
const char *type_c(const struct build *b, const struct type *t);
bool compile_c(struct pairing *p, const struct buffer *c, const char *path);

#endif
