/* A leader that nobody follows any more is as cheap as one that is alone. */
#ifndef MVE_INSIDE_QUIET_H
#define MVE_INSIDE_QUIET_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"

void quiet_begin(struct thread *t);
/* A call comes the long way, in a leader: is there anybody who follows? */
static inline void quiet_look(struct thread *t)
{
	if (!streams_followers(&streams, t->writer.section))
		quiet_begin(t);
}
static inline bool quiet_is(void)
{
	return __atomic_load_n(&quiet_on, __ATOMIC_RELAXED);
}
/* All stand, and somebody is about to follow. */
void quiet_end(void);

#endif
