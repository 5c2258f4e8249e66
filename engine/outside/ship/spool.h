/* Folders of recordings that are on their way: private, bounded, gone at the end. */
#ifndef MVE_OUTSIDE_SHIP_SPOOL_H
#define MVE_OUTSIDE_SHIP_SPOOL_H

#include <stddef.h>
#include <stdint.h>

/* A name that is free, in the user's cache; 0 or a negative errno (folder_why). */
int spool_name(char *path, size_t size);
/* Segments from *from up to this one are removed; *from is the next then. */
void spool_drop(int folder, uint32_t *from, uint32_t before);
/* All segments, and the folder if nothing else is in it. */
void spool_remove(int folder);

#endif
