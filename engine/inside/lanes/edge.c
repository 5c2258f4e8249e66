/*
 * Edges, in a leader: a thread that takes what another has given tells behind which place in
 * the other's lane its event comes, and its follower's waits until the other's has come there
 * (order/edges.c).
 *
 * Who gives marks the object before its call, for others may meet what it gives at once: by
 * its lane and the place where it will tell.  Who takes looks behind its call, and finds whoever
 * gave what it took, or one who gave later and by its own edge comes behind that.  So the event
 * at an edge's end was begun before the one that has the edge was told, and no follower can
 * wait in a circle: tests/model/edge.pml.
 *
 * What a thread has told an edge to, in each lane, it need not tell again.
 */
#include "engine/abi/edge.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/edge.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"

uint64_t object_givers[OBJECT_CLOCKS];
static uint32_t objects;
_Static_assert(OBJECT_FIRST % 2 == 0 && OBJECT_CLOCKS % 2 == 0, "two by two");

uint32_t objects_new(void)
{
	uint32_t n = __atomic_fetch_add(&objects, 2, __ATOMIC_RELAXED);

	return OBJECT_FIRST + n % (OBJECT_CLOCKS - OBJECT_FIRST);
}

/* Its giver is another thread of the process, in the life that it gave in. */
static bool is_others(const struct thread *t, uint64_t edge)
{
	const struct lane *l = &t->writer.section->lane[edge_lane(edge)];
	uint64_t now;

	if (!edge || edge_lane(edge) == t->lane || l->pid != t->pid)
		return false;
	now = edge_to(edge_lane(edge), l->life, CONSUME(lane_head, &l->head), EDGE_DONE);
	return edges_meet(edge, now) && edge_behind(edge, now) <= 0;
}

static bool leads_further(uint64_t edge, uint64_t than)
{
	return !edges_meet(edge, than) || edge_behind(edge, than) > 0;
}

/* One that this thread has not told yet waits for its next event, which can have one. */
static void edge_note(struct thread *t, uint64_t edge, uint64_t seq)
{
	if (!is_others(t, edge) || !leads_further(edge, *known_of(t, edge)) ||
	    (t->edge && !leads_further(edge, t->edge)))
		return;
	if (t->edge && !edges_meet(edge, t->edge))
		edge_tell(t, seq);
	t->edge = edge;
}

void object_give(struct thread *t, uint32_t object, bool done)
{
	uint64_t own;

	MUST(t->has_lane && !t->following);
	/* It is told at the place: nothing is to come between. */
	if (t->edge)
		edge_tell(t, 0);
	own = edge_to(t->lane, t->writer.lane->life, t->writer.head, done ? EDGE_DONE : 0);
	/* The call is still to be made. */
	edge_note(t, BOTH_BY(object_given, exchange_n, &object_givers[object], own), 0);
}

void edge_take(struct thread *t, uint64_t edge, uint64_t seq)
{
	MUST(t->has_lane && !t->following);
	edge_note(t, edge, seq);
}

void object_take(struct thread *t, uint32_t object, uint64_t seq)
{
	edge_take(t, CONSUME(object_given, &object_givers[object]), seq);
}

uint8_t edge_flag(struct thread *t)
{
	if (!t->edge)
		return 0;
	*known_of(t, t->edge) = t->edge;
	return EVENT_AFTER;
}

void edge_tell(struct thread *t, uint64_t seq)
{
	struct event *e = event_begin(t, EVENT_EDGE, 0, 0);

	if (seq)
		e->seq = seq;
	e->flags = edge_flag(t);
	edge_write(t, e);
	lane_commit(t);
}
