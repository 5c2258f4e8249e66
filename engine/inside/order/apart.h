/* Connections that may be served in another order. */
#ifndef MVE_INSIDE_APART_H
#define MVE_INSIDE_APART_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

/* Connections have a sequence of calls each. */
#define APART_NONE	(-1)	/* no connection's */
#define APART_ALL	(-2)	/* whosever */
void apart_restore(struct thread *t);
/* The event so many behind the front was met before its turn. */
bool apart_is_taken(const struct thread *t, unsigned i);
void apart_shift(struct thread *t);
/* Takes from the front on what was met before its turn. */
void apart_settle(struct thread *t);
void apart_forget(struct thread *t);
/* Takes the looked-at event, which is not the front. */
uint8_t apart_take(struct thread *t);
bool apart_is_behind(const struct thread *t);
void apart_mark(struct thread *t, unsigned i);
/* Drops the first n events that rules see through the lens; the last one's flags. */
uint8_t apart_drop(struct thread *t, unsigned n);

#endif
