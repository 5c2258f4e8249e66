/*
 * Patched code of files, for programs to map in place of the files' own: shelf.c.
 */
#ifndef MVE_OUTSIDE_SHELF_H
#define MVE_OUTSIDE_SHELF_H

#include "engine/outside/kernel/maps.h"

/* Limit (programs): parts of files whose patched code is shared. Beyond: it is copied. */
#define SHELF_PARTS	64
#define SHELF_NONE	SHELF_PARTS

struct shelf_part {
	uint64_t at, len;	/* on the shelf */
	struct map of;		/* what it was made of */
};

/*
 * Room for the code of such a mapping, whose pages the caller fills and never writes again:
 * its number and *code; or SHELF_NONE.
 */
unsigned shelf_add(const struct map *of, uint8_t **code);
const struct shelf_part *shelf_part(unsigned n);
/* How far it is filled, in whole pages; 0: there is nothing to be mapped. */
uint64_t shelf_filled(void);
/* Of a mapping that is the shelf's: it becomes that of the file. */
void shelf_name(struct map *m);
/* A descriptor by which nobody can write; -1 while it is empty. */
int shelf_fd(void);

#endif
