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

/*
 * Makes the kernel's copy equal to the vector at `at` in the tracee.  Debuggers
 * find our vDSO by it, and so their way through the gate; a kernel without
 * CONFIG_CHECKPOINT_RESTORE keeps its own, and only they notice.  What was moved
 * is told to the kernel by the same call.
 */
void auxv_publish(struct remote *r, uint64_t at, const struct layout_moves *moved);

#endif
