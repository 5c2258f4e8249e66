/*
 * Which events may be passed over: what they tell of may be missing in one version, or come
 * in another order.  How a follower's call meets them: elastic.c.
 */
#include "engine/core/walk.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/replay/follow.h"

bool follow_is_strict(void)
{
	return brief()->strict;
}

bool call_is_elastic(const struct call_desc *d)
{
	return d && (d->class == CLASS_SOFT || (d->class == CLASS_QUERY && !follow_is_strict()));
}

/* Clocks have no variants: their row is that of the number. */
bool event_is_elastic(const struct event *e)
{
	return event_looks(e) && (!follow_is_strict() || call_is_elastic(call_find(e->call)));
}

/* Locks have an order of their own: see locks.c. */
bool event_passable(const struct event *e)
{
	return event_is_plain(e) && (event_aside(e) || event_is_elastic(e));
}

bool ahead_full(const struct thread *t, const struct event *e)
{
	return t->ahead >> (AHEAD_EVENTS - 1) && event_is_elastic(e);
}
