/*
 * Coroutines of libc's.  What a coroutine stores into its own frames has no check, as it is with
 * the thread's stack; so what stands of its stack is saved before it goes on.
 */
#include <stdint.h>
#include "engine/checkpoint/seam/calls.h"

static void written(const ucontext_t *to)
{
	uintptr_t sp = (uintptr_t)to->uc_mcontext.gregs[REG_RSP];
	uintptr_t low = (uintptr_t)to->uc_stack.ss_sp;

	if (sp - low < to->uc_stack.ss_size)
		seam_written((void *)sp, low + to->uc_stack.ss_size - sp);
}

int mve_seam_setcontext(const ucontext_t *to)
{
	written(to);
	return setcontext(to);
}

int mve_seam_swapcontext(ucontext_t *from, const ucontext_t *to)
{
	seam_written(from, sizeof(*from));
	written(to);
	return swapcontext(from, to);
}
