/*
 * What a recording has brought along: files by their content, under DIR/files, and DIR/files.json,
 * which says where they belong.
 */
#ifndef MVE_OUTSIDE_PACK_PACKED_H
#define MVE_OUTSIDE_PACK_PACKED_H

#include <jansson.h>
#include <stdbool.h>

#include "engine/outside/bytes/sha256.h"

#define PACKED_FOLDER	"files"
#define PACKED_INDEX	"files.json"
#define PACKED_VERSION	1

/* Of a regular file that is open: its SHA-256, from its beginning; 0 or a negative errno. */
int packed_sum(int fd, char text[SHA256_TEXT]);
/*
 * Makes a mount namespace for this process, if files that were packed are missing here or are
 * others: there they are in their places.  0, or an exit code behind a message.
 */
int packed_enter(const char *path, const char *folder);

#endif
