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
/* Of one that is damaged. */
#define PACKED_HINT \
	"where its files are installed: remove files.json in it, then mve log DIR pack"

/* Of a regular file that is open: its SHA-256, from its beginning; 0 or a negative errno. */
int packed_sum(int fd, char text[SHA256_TEXT]);
/* PACKED_INDEX of a recording's folder; NULL: nothing is packed, or it is damaged. */
json_t *packed_index(int recording, bool *damaged);
/* It is there by this SHA-256, and holds that. */
bool packed_has(int files, const char *sum);
/* Texts, each of one thing that is damaged or missing; `n`: of so many files. */
json_t *packed_damage(int recording, size_t *n);
/*
 * Makes a mount namespace for this process, if files that were packed are missing here or are
 * others: there they are in their places.  0, or an exit code behind a message.
 */
int packed_enter(const char *path, const char *folder);

#endif
