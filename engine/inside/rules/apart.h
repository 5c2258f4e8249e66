/* Connections that may be served in another order. */
#ifndef MVE_INSIDE_APART_H
#define MVE_INSIDE_APART_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

/* Connections have a sequence of calls each. */
#define APART_NONE	(-1)	/* no connection's */
#define APART_ALL	(-2)	/* whosever */
enum apart { APART_GO_ON, APART_ANSWERED };
bool apart_given(const struct thread *t);
/* Whose the event is: a connection, or APART_NONE. */
int32_t apart_of(const struct event *e);
bool apart_passes(const struct thread *t, const struct event *e);
/* Before a call meets an event: which one it is, if it is not the front. */
enum apart apart_meet(struct thread *t, const struct walk *w, long nr, const struct event **e,
		      long *result);
void apart_restore(struct thread *t);
/* The event so many behind the front was met before its turn. */
bool apart_is_taken(const struct thread *t, unsigned i);
void apart_shift(struct thread *t);
void apart_forget(struct thread *t);
/* Takes the looked-at event, which is not the front. */
uint8_t apart_take(struct thread *t);
bool apart_is_behind(const struct thread *t);
void apart_mark(struct thread *t, unsigned i);
/* Drops the first n events that rules see through the lens; the last one's flags. */
uint8_t apart_drop(struct thread *t, unsigned n);

#endif
