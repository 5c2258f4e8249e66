/* Standing still; from leader to follower. */
#ifndef MVE_INSIDE_PARK_H
#define MVE_INSIDE_PARK_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/signal/ucontext.h"

void park_come(struct thread *t, struct ucontext_raw *uc);
/*
 * A process that is alone: where the thread is about to stand, and the program's place that it
 * came from; and company.c, while it stands.
 */
void company_note(const struct thread *t, uint64_t at, struct caller_place caller);
void company_come(struct thread *t);
/* The program is left, and none of its threads comes to a lane again. */
void company_end(void);
bool park_at_exit(struct thread *t);
void park_reset(struct thread *t);
/* From leader to follower, all of them. */
void threads_demote(struct thread *t);

#endif
