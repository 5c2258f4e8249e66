/*
 * Patched code of files, for programs to map in place of the files' own: shelf.c.
 */
#ifndef MVE_OUTSIDE_SHELF_H
#define MVE_OUTSIDE_SHELF_H

#include "engine/outside/kernel/maps.h"

/* Limit (programs): parts of files whose patched code is shared. Beyond: it is copied. */
#define SHELF_PARTS	64
#define SHELF_NONE	SHELF_PARTS
/* Limit (programs): bytes of code that is kept patched. Beyond: it is copied. */
#define SHELF_BYTES	(32ull << 20)

struct shelf_part {
	uint64_t at, len;	/* on the shelf */
	struct map of;		/* the mapping of a file whose place it takes */
};

/*
 * A part for such a mapping: its number, and *code, which the caller fills at once and never
 * writes again; or SHELF_NONE.
 */
unsigned shelf_add(const struct map *of, uint8_t **code);
const struct shelf_part *shelf_part(unsigned n);
/* Half of it is left for what is used again: what may be used once gets no part any more. */
bool shelf_is_roomy(void);
/*
 * A mapping of a part, and of nothing beside it, gets path, inode and offset of the file that
 * the part is of.
 */
void shelf_name_file(struct map *m);
/* What is left of the shelf, after that. */
bool shelf_is_rest(const struct map *m);
/* A descriptor by which nobody can write; -1: it cannot be had. */
int shelf_fd(void);

#endif
