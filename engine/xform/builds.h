/*
 * What mve-xform knows of a build, and how it pairs two of them.
 *
 * A build is read once (dwarf.c, types.c) and not changed after that; all of it lives in the
 * unit's arena.  Types are stripped of const and of typedefs, except that a structure without
 * a tag goes by its typedef's name.  Of one name there is one type: what several sources
 * declare alike is the first of them that is complete.
 */
#ifndef MVE_XFORM_BUILDS_H
#define MVE_XFORM_BUILDS_H

#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>

#include "engine/update/xform.h"
#include "rulec/rulec.h"

enum type_kind {
	TYPE_VOID, TYPE_NUMBER, TYPE_FLOAT, TYPE_ENUM, TYPE_POINTER, TYPE_FUNCTION,
	TYPE_STRUCT, TYPE_UNION, TYPE_ARRAY,
};

/* Where something is declared; file 0: nowhere that is known. */
struct place_in {
	const char *file;
	unsigned line, column;
};

struct field {
	struct field *next;
	const char *name;	/* "": anonymous */
	struct type *type;
	uint64_t at;		/* offset in bytes */
	unsigned bits, bit;	/* a bit-field's width and place in the structure, else 0 */
	struct place_in place;
};

struct value {
	struct value *next;
	const char *name;
	int64_t number;
};

struct type {
	struct type *next;	/* of the build, in order of number */
	struct type *chain;	/* in the table by place in DWARF */
	Dwarf_Off at;
	enum type_kind kind;
	const char *name;	/* a tag, a typedef's or a base type's name; NULL: none */
	bool tagged;		/* `struct name`, not `name` */
	bool is_signed, incomplete;
	uint64_t size;
	struct type *to;	/* of a pointer, an array */
	uint64_t count;		/* of an array; 0: flexible */
	struct field *fields;
	struct value *values;
	struct place_in place;
	unsigned number;
	bool emitting, emitted;	/* emit_types.c's */
};

struct variable {
	struct variable *next;
	const char *name, *function, *file;	/* file: NULL unless static */
	uint64_t at;
	struct type *type;
	bool constant;
	struct place_in place;
};

/* A local that the program names by mve_local(), on the stack of `function`. */
struct local {
	struct local *next;
	const char *name, *function;
	struct type *type;
	struct place_in place;
};

struct function {
	struct function *next;
	const char *name, *file;
	uint64_t at;
};

#define TYPE_SLOTS	4096

struct build {
	struct unit *u;
	const char *path, *which;	/* which: "old" or "new" */
	Dwarf *dwarf;
	int fd;
	char id[XFORM_ID];
	struct type *types, **types_end, *slots[TYPE_SLOTS];
	unsigned ntypes;
	struct named *named;	/* complete structures, unions and enums by name */
	struct variable *variables;
	struct local *locals;
	struct function *functions;
};

/* False after a word: no such file, no ELF file, no DWARF, no build id. */
bool build_read(struct unit *u, struct build *b, const char *path, const char *which);
void build_close(struct build *b);
/* types.c: the type of a DIE (of its DW_AT_type), of a name. */
struct type *type_of(struct build *b, Dwarf_Die *die);
struct type *type_named(struct build *b, const char *kind, const char *name);
/* The name most like it of that kind; NULL: none is. */
const char *type_nearest(const struct build *b, const char *kind, const char *name);
void type_index(struct build *b, Dwarf_Die *cu);
/* Each complete structure, union and enumeration that has a name; `at` begins as NULL. */
struct type *type_next(struct build *b, const struct named **at);
/* ... and the one of that name in another build; NULL: there is none. */
struct type *type_partner(struct build *b, const struct named *of);
/*
 * An enumeration of the old build and a name of it that has another number in the new one, which
 * is `*is`; NULL: there is none.
 */
const struct type *type_renumbered(struct build *old, struct build *new, const struct value **was,
	const struct value **is);
/* For messages: `struct entry`, `char [64]`, `void *`. */
const char *type_text(const struct unit *u, const struct type *t);
struct place_in die_place(struct build *b, Dwarf_Die *die);
const char *die_name(Dwarf_Die *die);
uint64_t die_number(Dwarf_Die *die, unsigned attribute, uint64_t otherwise);
const struct field *field_find(const struct type *t, const char *name, size_t len);

/* places.c: a place in a source of the program as one that diag_error() knows. */
struct loc place_loc(struct unit *u, struct place_in place);

#endif
