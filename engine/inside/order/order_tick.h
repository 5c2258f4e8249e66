/* A clock that has ticked: what was before it is done before it. */
#ifndef MVE_INSIDE_ORDER_TICK_H
#define MVE_INSIDE_ORDER_TICK_H

#include "engine/inside/gate/thread.h"

/* An EVENT_TICK is the thread's next; and it has come to what is behind. */
void order_tick(struct thread *t, const struct event *e);
void order_tick_over(struct thread *t);
/* Where what comes next shows a tick: the second is written down first. */
void order_tick_first(struct thread *t);

#endif
