/*
 * What the kernel's vDSO answers without a call.
 */
#include "engine/inside/calls/clock.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/gate/thread.h"

long clock_call(struct thread *t, long nr)
{
	struct clock_room room;

	return clock_read(t, nr, &room);
}

long call_serve(struct thread *t, long nr)
{
	return call_is_vdso(t) ? clock_call(t, nr) : serve_special(t, nr);
}
