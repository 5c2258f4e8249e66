/*
 * A build that is loaded: where it lies, and what its variables were when it began.
 */
#ifndef MVE_UPDATE_IMAGE_H
#define MVE_UPDATE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/update/xform.h"

struct image {
	void *handle;
	char *base, *end;
	char id[XFORM_ID];
	char *data, *first;	/* its writable segment, and that as it was at first */
	size_t data_size, file_size;
	int (*main)(int argc, char **argv, char **environ);
	const void *symbols;	/* its table, ElfW(Sym), with the names behind it; or NULL */
	size_t symbols_size, names_size;
};

/* False with a word in `why`. */
bool image_load(struct image *image, const char *path, char *why, size_t size);
void image_drop(struct image *image);
bool image_holds(const struct image *image, const void *at);
/* The name of the function that holds a place, static ones, too; NULL: nobody knows it. */
const char *image_function(const struct image *image, const void *at);
/* These bytes of its variables are still what the program's text says. */
bool image_fresh(const struct image *image, const char *at, size_t size);

#endif
