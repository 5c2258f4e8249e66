/*
 * Bringing the state of the old build into the new one.
 *
 * *Planning* walks all that variables lead to and changes nothing: what cannot be is found
 * here, and the old build goes on.  Then everything has its place, is *filled*, and what has
 * moved is freed; the *check* walks the new state.
 */
#ifndef MVE_UPDATE_MIGRATE_H
#define MVE_UPDATE_MIGRATE_H

#include <stdio.h>

#include "engine/update/image.h"

#define WHY_SIZE	512

/* An allocation, and what it is. */
struct object {
	char *old, *new;
	size_t size, count, room;	/* count of the type; room: bytes of a flexible end */
	const struct xform_pair *pair;
	const char *in, *where;		/* what leads there first; in: the structure, or NULL */
};

/* Opaque memory of one owner has addresses of what moves. */
struct opaque {
	const char *in, *where;
	const struct xform_pair *pair;	/* what moves */
	size_t n;
};

#define OPAQUES_TOLD	8

/* A pointer into the middle, to be looked at when all allocations have their types. */
struct inner {
	const char *at;
	const char *where;
	const struct xform_pair *pair;
};

struct kept_local {
	struct kept_local *next;
	void *thread;		/* whose it is */
	char function[64], name[64];
	void *at;
	size_t size;
	void *value;		/* in the new build's form; else NULL */
};

struct migration {
	const struct xform *x;
	const struct image *old, *new;
	struct object *objects;
	size_t nobjects, objects_size;
	uint32_t *slots;
	size_t nslots;
	struct inner *inners;
	size_t ninners, inners_size;
	struct object *unknown;		/* what pointers lead to behind which nobody looks */
	size_t nunknown, unknown_size;
	struct opaque opaques[OPAQUES_TOLD];
	size_t nopaques;
	const char *in;			/* the structure that is looked at */
	struct kept_local *locals;
	bool (*is_stack)(const void *at);
	struct span *spans;	/* where only code changed: words.c */
	size_t nspans, nled, nlooked;
	char why[WHY_SIZE];
	bool later;		/* it was a bad moment: the same may go well another time */
};

/* plan.c */
bool migration_plan(struct migration *m);
/* What all that was found leads to: variables, and threads' arguments. */
bool objects_plan(struct migration *m);
bool plan_argument(struct migration *m, const char *function, const void *argument);
struct object *object_find(const struct migration *m, const char *old);
void migration_free(struct migration *m);
void migration_tell(const struct migration *m, FILE *to);
bool wrong(struct migration *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
const struct xform_variable *variable_at(const struct migration *m, const char *at);
/* Where a place in a thing of this type is in the new one; XFORM_NONE: nowhere. */
size_t place_moved(const struct xform_pair *pair, size_t at);
bool is_bytes(const struct xform_pair *pair);
const struct xform_thread *thread_said(const struct migration *m, const char *function);
const char *function_name(const struct migration *m, const void *at);
bool variable_goes(const struct migration *m, const struct xform_variable *v);
const struct xform_local *local_said(const struct migration *m, const struct kept_local *l);

/* fill.c */
bool migration_fill(struct migration *m);
/* Frees what has moved: from here on nobody can be told where it is now. */
void migration_leave(struct migration *m);
void *migrated(struct migration *m, const void *old);
void *migrated_code(struct migration *m, const void *old);

/* words.c: the same where nothing but code changed. */
bool words_plan(struct migration *m);
bool words_fill(struct migration *m);
/* Where such an address is in the new build; NULL: nowhere else. */
char *word_moved(const struct migration *m, const char *word);
void words_tell(const struct migration *m, FILE *to);

/* opaque.c: addresses of what moves in memory that nobody looks into; they stay, and it is said. */
void opaque_look(struct migration *m);
void opaque_tell(const struct migration *m, FILE *to);

/* check.c: false: something leads into old or freed memory. */
bool migration_check(struct migration *m);

#endif
