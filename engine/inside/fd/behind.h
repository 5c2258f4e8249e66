/* What stands behind a descriptor. */
#ifndef MVE_INSIDE_BEHIND_H
#define MVE_INSIDE_BEHIND_H

#include <linux/stat.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/abi/event.h"

/* What followers are told of it: with its content, if that is at most so large. */
enum file_kind behind_kind(long fd, const struct statx *st, uint64_t prot, uint64_t limit);
bool behind_is_written(long fd, const struct statx *st);
/* It is newer than the program that runs. */
bool behind_is_made_here(const struct statx *st);
/* Another description of the file, or an error. */
long behind_reopened(long fd);

#endif
