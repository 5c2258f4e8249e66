/*
 * Patching the code of a process: plans, boards and jumps, written through its
 * memory file while no thread of it can be in the code concerned.
 */
#ifndef MVE_OUTSIDE_PATCH_H
#define MVE_OUTSIDE_PATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/outside/maps.h"

/* Room for boards in the process: mapped, executable, filled from `used` on. */
struct board_room {
	uint64_t at, len, used;
};

struct patch_sum {
	unsigned patched;	/* sites that jump to a board now */
	unsigned trapped;	/* sites left to the net */
	bool vsyscall;		/* the file may call the vsyscall page */
};

/*
 * Patches the sites that lie in one executable mapping of a file (or of the
 * vDSO).  Adds to *sum.  0 or a negative errno; what could not be patched is
 * left to the net, and the code is whole in every case.
 */
int patch_map(pid_t pid, int memory, const struct map *m, struct board_room *room,
	      struct patch_sum *sum);

/* Bytes of board room that the mapping may need; 0 when it has no sites. */
uint64_t patch_room_needed(pid_t pid, int memory, const struct map *m);

#endif
