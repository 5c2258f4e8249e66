/* A call on a connection that is served in its own order meets its event. */
#ifndef MVE_INSIDE_APART_MEET_H
#define MVE_INSIDE_APART_MEET_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/apart.h"

bool apart_given(const struct thread *t);
/* Whose the event is: a connection, or APART_NONE. */
int32_t apart_of(const struct event *e);
bool apart_passes(const struct thread *t, const struct event *e);

enum apart { APART_GO_ON, APART_ANSWERED };
/* Before a call meets an event: which one it is, if it is not the front. */
enum apart apart_meet(struct thread *t, const struct walk *w, long nr, const struct event **e,
		      long *result);

#endif
