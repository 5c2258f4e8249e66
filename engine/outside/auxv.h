/*
 * The kernel's copy of a program's auxiliary vector, which debuggers read.
 */
#ifndef MVE_OUTSIDE_AUXV_H
#define MVE_OUTSIDE_AUXV_H

#include "engine/outside/remote.h"

/*
 * Makes the kernel's copy equal to the vector at `at` in the tracee.  Debuggers
 * find our vDSO by it, and so their way through the gate; a kernel without
 * CONFIG_CHECKPOINT_RESTORE keeps its own, and only they notice.
 */
void auxv_publish(struct remote *r, uint64_t at);

#endif
