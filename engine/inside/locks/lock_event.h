/* Which lock event answers a follower's lock. */
#ifndef MVE_INSIDE_LOCK_EVENT_H
#define MVE_INSIDE_LOCK_EVENT_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/locks.h"

bool lock_is_same(const struct thread *t, const struct lock_call *c, const struct event *e);
const struct event *lock_behind_locks(struct thread *t, const struct lock_call *c);
const struct event *lock_event(struct thread *t, struct lock_call *c);
/* On the short way: a lock is made where another may have been. */
long lock_renewed(struct thread *t, struct lock_call *c);
void lock_event_take(struct thread *t, struct lock_call *c, const struct event *e);
void lock_signal_next(struct thread *t, const struct lock_call *c);

#endif
