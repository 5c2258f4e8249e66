/* Timers and record locks, which no descriptor brings along. */
#ifndef MVE_INSIDE_KEPT_H
#define MVE_INSIDE_KEPT_H

#include "engine/inside/gate/thread.h"

/* Timers and record locks.  A call of either kind has been made. */
extern uint32_t kept_locks;
void kept_note(struct thread *t, long nr, const uint64_t *args, int64_t result);
/* The stream tells a signal. */
void kept_signal(const uint8_t *info);
void kept_start(struct thread *t);
void timers_learn(struct thread *t);
void timers_drop(struct thread *t);
void kept_locks_make(struct thread *t);
void kept_fork(struct thread *t);
long kept_timer_create(struct thread *t);

#endif
