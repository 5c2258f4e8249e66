/*
 * What patching a mapping comes to, made of its file and kept.
 */
#ifndef MVE_OUTSIDE_PATCHED_H
#define MVE_OUTSIDE_PATCHED_H

#include "engine/outside/patch/patch.h"
#include "engine/outside/plan/plan_parts.h"

/*
 * Writes what is kept for such a mapping, or has a part of the shelf moved there (`shelf`, or
 * NULL); -ENOENT: nothing is kept, and nothing was written.
 */
int patched_again(struct plan *p, pid_t pid, int memory, const struct map *m,
		  struct board_room *room, struct patch_sum *sum, struct shelf_view *shelf);

#endif
