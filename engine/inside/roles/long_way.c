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
#include "engine/inside/lanes/rest.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/roles/long_way.h"

/* A follower is to know who sleeps for another thread (follow_futex.c). */
void ways_follow(struct thread *t)
{
	(void)t;
	way_set(__NR_futex + 1u, WAY_LONG);
}

/* Where threads work in turns they go through here at each call that may wait. */
void ways_baton(void)
{
	if (!baton_is_asked())
		return;
	ways_untold();
	for (unsigned s = 1; s < SLOT_CALLS; s++)
		if (call_traits(s - 1) & TRAIT_YIELDS || baton_wakes(call_find(s - 1)))
			way_set(s, WAY_LONG);
}

static bool is_long(unsigned slot)
{
	/* A number that has no row may be one that a program asks us by (UPDATE_CALL). */
	return boot.role == ROLE_TRACE || !slot || call_is_special(slot - 1) ||
	       (boot.role != ROLE_SOLO && !(slot && call_is_local(slot - 1)));
}

/* Fills the tables of the role that the process has now. */
void ways_fill(void)
{
	for (unsigned s = 0; s < SLOT_CALLS; s++)
		way_set(s, is_long(s) ? WAY_LONG : WAY_SHORT);
	if (boot.role == ROLE_FOLLOWER)
		ways_follow(NULL);
}

void ways_begin(void)
{
	rest_begin();
	slots_fill();
	for (unsigned s = 1; s < SLOT_CALLS; s++)
		if (call_traits(s - 1) & TRAIT_LASTS)
			way_lasting(s);
	ways_fill();
}
