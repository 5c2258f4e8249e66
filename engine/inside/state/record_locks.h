/* Record locks, which no descriptor brings along. */
#ifndef MVE_INSIDE_RECORD_LOCKS_H
#define MVE_INSIDE_RECORD_LOCKS_H

#include "engine/inside/gate/thread.h"

extern uint32_t record_locks;	/* how many there are: where it is 0 a close gives none up */
/* What state.def says of them. */
void record_locks_note(struct thread *t, long nr, const uint64_t *args);
void record_locks_make(struct thread *t);
void record_locks_fork(struct thread *t);

#endif
