/* Signals that are never really blocked: what the program believes of them. */
#ifndef MVE_INSIDE_HIDDEN_H
#define MVE_INSIDE_HIDDEN_H

#include "engine/inside/gate/thread.h"

/* One that was sent to a thread which believes to block it: it waits now. */
bool hidden_kept(struct thread *t, int sig, const uint8_t *info);
bool hidden_ignored(const struct thread *t, int sig, const uint8_t *info);
void hidden_block(struct thread *t, uint64_t blocked);
bool hidden_come(struct thread *t, uint64_t unblocked);
void hidden_forget(const struct thread *t, int sig);
uint8_t *hidden_info(struct thread *t, int sig);

#endif
