/* A folder to which the ring is spilled, and whether its disk has room. */
#ifndef MVE_OUTSIDE_DISK_H
#define MVE_OUTSIDE_DISK_H

#include <stdbool.h>
#include <stdint.h>

/* A file without a name in the folder, for us alone; or a negative errno. */
int disk_file(int folder);
/* The file's bytes are in memory, or may be. */
bool disk_is_memory(int file);
/* Bytes that the file may have, so that others keep what they need. */
uint64_t disk_share(int file);
/* It may have so many more. */
bool disk_has_room(int file, uint64_t bytes);

#endif
