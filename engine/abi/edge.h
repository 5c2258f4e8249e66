/*
 * An edge: behind which place of another lane of its process an event comes.  It is a word in
 * the event (EVENT_AFTER), with as much of lane, life and place as tells them from others of
 * their time.  What a thread gives at the place has begun when the thread stands there, and
 * is done (EDGE_DONE) when it has gone on behind it: the edge says which of the two is meant.
 */
#ifndef MVE_ABI_EDGE_H
#define MVE_ABI_EDGE_H

#include "engine/abi/ring.h"

#define EDGE_DONE	1ull
#define EDGE_PLACE_BITS	40
#define EDGE_LIFE_BITS	12
#define EDGE_LIVES	((1u << EDGE_LIFE_BITS) - 1)
#define EDGE_LANE_SHIFT	53

_Static_assert(LANES <= 1u << (64 - EDGE_LANE_SHIFT), "a lane has a number");
_Static_assert(EDGE_PLACE_BITS + 1 + EDGE_LIFE_BITS == EDGE_LANE_SHIFT, "nothing overlaps");

/* No event stands where a chunk's turn does: the next one is behind it. */
static inline uint64_t place_of_event(uint64_t at)
{
	return at + (at % CHUNK_CELLS == CHUNK_CELLS - 1);
}

/* Never 0, which is no edge. */
static inline uint64_t edge_to(uint32_t lane, uint32_t life, uint64_t at, uint64_t done)
{
	uint64_t place = place_of_event(at) & ((1ull << EDGE_PLACE_BITS) - 1);

	return (uint64_t)lane << EDGE_LANE_SHIFT |
	       (uint64_t)(life % EDGE_LIVES + 1) << (EDGE_PLACE_BITS + 1) | place << 1 | done;
}

static inline uint32_t edge_lane(uint64_t edge)
{
	return (uint32_t)(edge >> EDGE_LANE_SHIFT);
}

/* Two edges to one life of a lane. */
static inline int edges_meet(uint64_t edge, uint64_t other)
{
	return !((edge ^ other) >> (EDGE_PLACE_BITS + 1));
}

/* How far the one leads behind the other; less than 0: before it. */
static inline int64_t edge_behind(uint64_t edge, uint64_t other)
{
	return (int64_t)((edge - other) << (63 - EDGE_PLACE_BITS));
}

#endif
