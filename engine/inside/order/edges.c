/*
 * Edges, in a follower: an event that comes behind a place of another lane is met when the
 * thread of that lane has come there (abi/edge.h; the leader's side is lanes/edge.c).  How far
 * each has come is what its cursor says, so there is nothing to be counted.
 *
 * The leader's word may be anything.  What is no place of a life that the lane has is behind
 * us; and every wait has an end (WAIT_edge).
 */
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/order/edges.h"
#include "engine/inside/order/order.h"

static const struct thread *thread_of_lane(const struct thread *t, uint32_t lane)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && o->following && o->lane == lane &&
		    CONSUME(thread_has_lane, &o->has_lane))
			return o;
	return NULL;
}

/* Its thread stands at the place: what it did before is done. */
static bool is_begun(const struct thread *t, uint64_t edge)
{
	const struct thread *o = thread_of_lane(t, edge_lane(edge));

	return !(edge & EDGE_DONE) && o && CONSUME(thread_waits, &o->waits) == 1;
}

/* The thread at the edge's end has yet to come there. */
static bool is_open(const struct thread *t, uint64_t edge)
{
	uint32_t lane = edge_lane(edge), source = t->reader.cursor->source;
	const struct cursor *c = &streams_section(&streams, streams.self)->cursor[lane];
	const struct lane *l = &t->reader.from->lane[lane];
	uint32_t life = CONSUME(lane_life, &l->life);
	uint64_t at;

	/* A life that is over was read to its end by all; and some lanes we are not told. */
	if (lane == t->lane || !edges_meet(edge, edge_to(lane, life, 0, 0)) ||
	    !(CONSUME(lane_readers, &l->readers) >> streams.self & 1))
		return false;
	if (c->source != source)
		return order_leads_to(c->source, source);
	if (CONSUME(cursor_life, &c->life) != life)
		return true;
	/* Nobody comes where nothing was told, for the leader died there. */
	if (CONSUME(conduct_bits, &streams.conduct->ended) >> source & 1 &&
	    edge_behind(edge_to(lane, life, CONSUME(lane_head, &l->head), 0), edge) <= 0)
		return false;
	at = edge_to(lane, life, CONSUME(cursor_at, &c->at), 0);
	if (c->done == life || edge_behind(at, edge | EDGE_DONE) > 0)
		return false;
	return edge_behind(at, edge & ~EDGE_DONE) < 0 || !is_begun(t, edge);
}

/* An order_test, as the next: one that is yet to be made is waited for as if it were t. */
static const struct thread *edge_open(const struct thread *t, uint64_t edge)
{
	const struct thread *o = is_open(t, edge) ? thread_of_lane(t, edge_lane(edge)) : NULL;

	return o || !is_open(t, edge) ? o : t;
}

/* One that sleeps until another wakes it may never come. */
static const struct thread *edge_open_awake(const struct thread *t, uint64_t edge)
{
	const struct thread *o = edge_open(t, edge);

	return o && order_is_awake(o) ? o : NULL;
}

void edge_wait(struct thread *t, uint64_t edge)
{
	uint8_t waits = t->waits;
	bool met;

	MUST(t->following);
	if (wait_given_up(WAIT_edge) || !is_open(t, edge))
		return;
	/* The event is not taken yet. */
	PUBLISH(thread_waits, &t->waits, 1);
	met = order_wait_for_awake(t, edge, edge_open, edge_open_awake, WAIT_edge);
	__atomic_store_n(&t->waits, waits, __ATOMIC_RELAXED);
	if (!met)
		request_ask(t, REQ_NOTE, NOTE_TOLD_BEFORE, edge_lane(edge), 0);
}

void edge_meet(struct thread *t, const struct event *e)
{
	if (e->flags & EVENT_AFTER)
		edge_wait(t, e->arg[EDGE_ARG]);
}
