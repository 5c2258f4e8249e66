/*
 * The kernel's copy of a program's auxiliary vector, which debuggers read.
 */
#ifndef MVE_OUTSIDE_AUXV_H
#define MVE_OUTSIDE_AUXV_H

#include "engine/outside/kernel/remote.h"

struct layout_moves;

/* Where a fresh program's heap will begin, and its argument strings; 0: unknown. */
uint64_t process_brk(pid_t pid);
uint64_t process_arguments(pid_t pid);

/* Where its vDSO lies, which is our image, as the kernel has been told; 0: unknown. */
uint64_t process_vdso(pid_t pid);

#define AUXV_MAX	(64 * 16)	/* bytes; the kernel's is shorter */

/*
 * The call that makes the kernel's copy equal to the vector in the tracee.  Debuggers
 * find our vDSO by it, and so their way through the gate; a kernel without
 * CONFIG_CHECKPOINT_RESTORE keeps its own, and only they notice.
 */
struct batch_call auxv_call(uint64_t at, uint64_t len);

/* The same where that lacks the right, or something was moved, which is told as well. */
void auxv_publish(struct remote *r, uint64_t at, uint64_t len, const struct layout_moves *moved);

#endif
