/*
 * What patching a mapping came to, to be written again.
 */
#ifndef MVE_OUTSIDE_PATCHED_H
#define MVE_OUTSIDE_PATCHED_H

#include "engine/outside/patch/patch.h"
#include "engine/outside/plan/plan_parts.h"

struct patched {
	const uint8_t *code;	/* of the whole mapping, as it is now */
	const uint8_t *touched;	/* per page */
	const uint8_t *boards;
	uint64_t boards_len;
	const uint32_t *end;	/* where the boards hold the address behind a site */
	unsigned ends;
};

/*
 * Writes what is kept for such a mapping, or has a part of the shelf moved there (`shelf`, or
 * NULL); -ENOENT: nothing is kept, and nothing was written.
 */
int patched_again(struct plan *p, pid_t pid, int memory, const struct map *m,
		  struct board_room *room, struct patch_sum *sum, struct shelf_view *shelf);
/* Keeps it; `before` is the room as it was. */
void patched_keep(struct plan *p, const struct map *m, const struct board_room *before,
		  const struct patched *now, const struct patch_sum *sum);

#endif
