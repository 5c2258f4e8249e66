/* Record locks, which no descriptor brings along. */
#ifndef MVE_INSIDE_RECORD_LOCKS_H
#define MVE_INSIDE_RECORD_LOCKS_H

#include "engine/abi/state.h"
#include "engine/inside/gate/thread.h"

/* The old leader holds it, as the monitor says: what state.def makes is to be this. */
void record_lock_held(struct thread *t, const struct taken_lock *l);
/* Some are to be made: the old leader is to let go of them. */
bool record_locks_wait(void);
/* What state.def says of them. */
void record_locks_make(struct thread *t);
void record_locks_fork(struct thread *t);

#endif
