/*
 * What threads of a leader give each other by calls: bytes in a pipe, registrations, signals,
 * numbers of descriptors that are free again.  Each such thing is an *object*, which knows where
 * its last giver told of it.
 */
#ifndef MVE_INSIDE_EDGE_H
#define MVE_INSIDE_EDGE_H

#include "engine/abi/edge.h"
#include "engine/abi/event.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/thread.h"

/*
 * Objects share clocks where there are more of them than clocks: an edge too many, then, and
 * none too few, for who gives comes behind who gave before.
 */
enum object { OBJECT_OTHER, OBJECT_SIGNALS, OBJECT_RANGES, OBJECT_FIRST = 4 };

#define OBJECT_CLOCKS	1024
/* By the last giver of each: an edge to it. */
extern uint64_t object_givers[OBJECT_CLOCKS];

static inline uint64_t *known_of(struct thread *t, uint64_t edge)
{
	return &known_edges(t)[edge_lane(edge) % KNOWN_EDGES];
}

/* Two new ones, the second is the first ^ 1. */
uint32_t objects_new(void);
/* The call that is about to be made gives; others must find it done, or begun. */
void object_give(struct thread *t, uint32_t object, bool done);
/* Who gave last is this thread itself, nobody, or one to whom it has told this very edge. */
static inline bool object_is_known(struct thread *t, uint32_t object)
{
	uint64_t edge = CONSUME(object_given, &object_givers[object]);

	return !edge || edge_lane(edge) == t->lane || *known_of(t, edge) == edge;
}
/* The call that was made took, and is about to be told by this number. */
void object_take(struct thread *t, uint32_t object, uint64_t seq);
/* The same, from who gave there. */
void edge_take(struct thread *t, uint64_t edge, uint64_t seq);
/* The thread's edge, as an event of its own, by the number of the next or 0. */
void edge_tell(struct thread *t, uint64_t seq);
/* The next event that can bear one is to have the thread's edge (EVENT_AFTER), or 0. */
uint8_t edge_flag(struct thread *t);
/* It has that flag. */
static inline void edge_write(struct thread *t, struct event *e)
{
	e->arg[EDGE_ARG] = t->edge;
	t->edge = 0;
}

#endif
