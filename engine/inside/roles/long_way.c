/*
 * Which calls take the long way in which role.  Alone only those that the inside must take
 * part in; a tracing session sends all of them there, a leader and a follower those that are
 * not local.
 */
#include <asm/unistd.h>

#include "engine/abi/table.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/roles/long_way.h"

/* A follower is to know who sleeps for another thread (follow_futex.c). */
void ways_follow(struct thread *t)
{
	(void)t;
	way_set(__NR_futex + 1u, true);
}

/* Fills the tables of the role that the session began with. */
void ways_fill(void)
{
	slots_fill();
	for (unsigned s = 0; s < SLOT_CALLS; s++)
		way_set(s, boot.role == ROLE_TRACE || (s && call_is_special(s - 1)) ||
			       (boot.role != ROLE_SOLO && !(s && call_is_local(s - 1))));
	if (boot.role == ROLE_FOLLOWER)
		ways_follow(NULL);
}
