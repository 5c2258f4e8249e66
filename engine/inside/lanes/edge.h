/*
 * What threads of a leader give each other by calls: bytes in a pipe, registrations, signals.
 * Each such thing is an *object*, which knows where its last giver told of it.
 */
#ifndef MVE_INSIDE_EDGE_H
#define MVE_INSIDE_EDGE_H

#include "engine/abi/event.h"
#include "engine/inside/gate/thread.h"

/*
 * Objects share clocks where there are more of them than clocks: an edge too many, then, and
 * none too few, for who gives comes behind who gave before.
 */
enum object { OBJECT_OTHER, OBJECT_SIGNALS, OBJECT_FIRST };

/* Two new ones, the second is the first ^ 1. */
uint32_t objects_new(void);
/* The call that is about to be made gives; others must find it done, or begun. */
void object_give(struct thread *t, uint32_t object, bool done);
/* The call that was made took. */
void object_take(struct thread *t, uint32_t object);
/* The next event that can bear one is to have the thread's edge (EVENT_AFTER), or 0. */
uint8_t edge_flag(struct thread *t);
/* It has that flag. */
static inline void edge_write(struct thread *t, struct event *e)
{
	e->arg[EDGE_ARG] = t->edge;
	t->edge = 0;
}

#endif
