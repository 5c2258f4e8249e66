/* The leader: each call that is not a version's own affair becomes an event. */
#ifndef MVE_INSIDE_LEAD_H
#define MVE_INSIDE_LEAD_H

#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"

/*
 * Before the next thing is told: what was told in a spare chunk is paid for.  The thread may
 * wait for it where it stands, with nothing done that a tick could be on the wrong side of.
 */
static inline void lead_settle(struct thread *t)
{
	if (!t->writer.owes)
		return;
	PUBLISH(thread_away, &t->away, AWAY);
	host_settle(&t->writer);
	PUBLISH(thread_away, &t->away, 0);
}
/* What the loader opens it closes again, and must have until then: see park.c. */
void own_files_count(struct thread *t, const struct call_desc *d, int64_t result);
long lead_call(struct thread *t, long nr);
/* The same in a thread that nobody is told of. */
long lead_laneless(struct thread *t, long nr);
/* Tells of something that has no arguments and was done already. */
void lead_told(struct thread *t, long nr, int64_t result);
void lead_begin(struct thread *t);
void lead_resume(struct thread *t);

#endif
