/*
 * What a transformation is: the contract between the C that mve-xform writes and who carries
 * it out (engine/update/state/migrate.h).  It is data, with functions only where the user gave C.
 *
 * A *pair* says how a thing of one type of the old build becomes one of the new.  Raise
 * XFORM_VERSION when any of these structures change.  No libc header stands here: the names
 * of the program's own types are to be free.
 */
#ifndef MVE_UPDATE_XFORM_H
#define MVE_UPDATE_XFORM_H

#define XFORM_VERSION	2
#define XFORM_ID	48	/* a build id in hexadecimal digits, and a zero */
#define XFORM_NONE	(~0ul)	/* an offset of what the other build has not */

enum xform_kind {
	XFORM_BYTES,	/* as they are */
	XFORM_NUMBER,	/* integers: sizes and signs may differ */
	XFORM_REAL,	/* at least one of the two is a float or double */
	XFORM_ENUM,	/* numbers by table */
	XFORM_POINTER,	/* to what `to` says; NULL: to what nobody looks into */
	XFORM_CODE,	/* to a function */
	XFORM_STRUCT,	/* its fields; also of a union, whose members ask `live` */
	XFORM_ARRAY,	/* old_count, new_count of `to` */
	XFORM_SET,	/* nothing of the old: the user's C gives it */
	XFORM_MUTEX,	/* bytes, and nobody may hold it */
};

struct xform_pair {
	const char *name;	/* of the type, for people */
	enum xform_kind kind;
	_Bool moves;		/* the new one is another object; else it is changed where it is */
	_Bool still;		/* nothing in it is changed, and nothing in it leads on */
	_Bool old_signed, new_signed, old_real, new_real;
	unsigned long old_size, new_size, old_count, new_count;
	const struct xform_pair *to;
	unsigned long inside;	/* of a pointer: so far into what `to` describes it leads */
	const struct xform_field *fields;
	unsigned long nfields;
	const struct xform_value *values;
	unsigned long nvalues;
	void (*fill)(void *new_at, const void *old_at);	/* behind the fields; or NULL */
};

struct xform_field {
	const char *name;
	unsigned long from, to;	/* offsets; `from` XFORM_NONE: new */
	const struct xform_pair *pair;
	_Bool (*live)(const void *old_at);	/* of the structure; NULL: always */
	_Bool flexible;		/* the array at the end: as many as there is room for */
};

struct xform_value {
	const char *name;
	long from, to;
};

struct xform_variable {
	const char *name;
	unsigned long old_at, new_at;	/* from the builds' beginnings */
	const struct xform_pair *pair;	/* NULL: `fill` alone */
	_Bool constant;			/* the new build's own, found by its address only */
	_Bool unlike;			/* of another type, where only code changed */
	unsigned long old_size, old_each, new_each;	/* each: of an array's elements */
	void (*fill)(void *new_at, const void *old_at);
};

struct xform_local {
	const char *function, *name;
	const struct xform_pair *pair;
};

struct xform_function {
	const char *name;
	unsigned long old_at, new_at;	/* new_at XFORM_NONE: gone */
};

/* What a thread's argument points to. */
struct xform_thread {
	const char *function;
	const struct xform_pair *pair;
};

struct xform {
	unsigned version;
	char old_id[XFORM_ID], new_id[XFORM_ID];
	const struct xform_variable *variables;
	const struct xform_local *locals;
	const struct xform_function *functions;
	const struct xform_thread *threads;
	unsigned long nvariables, nlocals, nfunctions, nthreads;
	_Bool code_only;	/* both builds' types are alike, and no pair is given */
	char **old_base, **new_base;	/* set before anything of it is called */
};

/* The C of users may ask for these; engine/update has them. */
void *mve_migrated(const void *old);	/* where a thing of the old state is now */

#endif
