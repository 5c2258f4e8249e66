/*
 * The kernel's copy of a program's auxiliary vector, which debuggers read.
 */
#ifndef MVE_OUTSIDE_AUXV_H
#define MVE_OUTSIDE_AUXV_H

#include <linux/prctl.h>

#include "engine/outside/kernel/remote.h"

struct layout_moves;

/* Where a fresh program's heap will begin, and its argument strings; 0: unknown. */
uint64_t process_brk(pid_t pid);
uint64_t process_arguments(pid_t pid);

/* Where its vDSO lies, which is our image, as the kernel has been told; 0: unknown. */
uint64_t process_vdso(pid_t pid);

/* What PR_SET_MM_MAP would have to be told for the process to be as it is, but for the heap's end
   and the vector; false: it is not there. */
bool process_mm(pid_t pid, struct prctl_mm_map *mm);

#define AUXV_MAX	(64 * 16)	/* bytes; the kernel's is shorter */

/*
 * The call that makes the kernel's copy equal to the vector in the tracee: debuggers find
 * our vDSO by it, and so their way through the gate; a kernel without CONFIG_CHECKPOINT_RESTORE
 * keeps its own, and only they notice.  `whole`, of the program as it stands, for the caller
 * to put at `whole_at` in the tracee, is what the call points to where something was moved,
 * which is told as well, and where the right to tell the vector alone is lacking.
 */
struct auxv_told {
	struct prctl_mm_map whole;
	bool is_whole;
};

struct batch_call auxv_call(struct auxv_told *told, uint64_t whole_at, pid_t pid, uint64_t at,
			    uint64_t len, const struct layout_moves *moved);
/* What it came to; a program that had to be told of as a whole is so now, and those after it. */
void auxv_learn(const struct auxv_told *told, long result, struct remote *r, uint64_t at,
		uint64_t len);

#endif
