/* Signals for a version that leads, at a thread that does not yet. */
#ifndef MVE_INSIDE_EARLY_H
#define MVE_INSIDE_EARLY_H

#include "engine/inside/gate/thread.h"

/* Signals for a version that leads, at a thread that does not yet. */
bool early_may_come(void);
void early_note(const struct thread *t, const uint8_t *info);
/* One that had come to the twin; for this thread, or the process (0). */
void early_take(int32_t tid, const uint8_t *info);
/* The thread is about to lead: they are sent again, and come when it does. */
uint64_t early_come(struct thread *t);
void early_over(struct thread *t, uint64_t mask);
/* A signal is to be sent to this process of ours: it hears first of what is older. */
void early_wait(int32_t pid);
void early_begin(struct thread *t);
void early_forget(struct thread *t);
/* It leads no more: nothing waits for it in the kernel. */
void early_drain(void);

#endif
