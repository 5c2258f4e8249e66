/* What the kernel's vDSO answers without a call. */
#ifndef MVE_INSIDE_CLOCK_H
#define MVE_INSIDE_CLOCK_H

#include "engine/inside/gate/thread.h"

long call_serve(struct thread *t, long nr);

/* A call of our vDSO: the kernel's answers it without a call. */
static inline bool call_is_vdso(const struct thread *t)
{
	return !t->frame.site_end;
}

long clock_call(struct thread *t, long nr);

#endif
