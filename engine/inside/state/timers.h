/* Timers, which no descriptor brings along. */
#ifndef MVE_INSIDE_TIMERS_H
#define MVE_INSIDE_TIMERS_H

#include "engine/abi/request.h"
#include "engine/inside/gate/thread.h"

/* What state.def says of them. */
void timers_note(struct thread *t, long nr, const uint64_t *args);
void timers_make(struct thread *t);
void timers_learn(struct thread *t);
void timers_drop(struct thread *t);
void timers_copied(void);
/* Those that it has made when it told nobody. */
void timers_come(struct thread *t, const struct company_timer *timer, uint32_t n);
void timers_fork(struct thread *t);
/* The stream tells a signal. */
void timers_signal(const uint8_t *info);
/* In a version that has taken over. */
long timers_create(struct thread *t);

#endif
