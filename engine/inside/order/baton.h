/* One at a time: a process' threads work in turns, which are told (--one-at-a-time). */
#ifndef MVE_INSIDE_BATON_H
#define MVE_INSIDE_BATON_H

#include <stdbool.h>

#include "engine/abi/event.h"
#include "engine/abi/table.h"
#include "engine/inside/gate/thread.h"

/* The session's threads work in turns. */
bool baton_is_asked(void);
/* The process has threads, or is about to, which take turns from here on: this one has it. */
void baton_begin(struct thread *t);
/* The child of a fork: nobody takes turns with it. */
void baton_alone(struct thread *t);
/* It takes part. */
bool baton_applies(const struct thread *t);
/* The call may wait for another, who is to work meanwhile. */
bool baton_lets_go(const struct call_desc *d);
void baton_give(struct thread *t);
/* The thread is about to end. */
void baton_leave(struct thread *t);
/* A leader's: in front of a call that is told, and does not wait. */
void baton_yield(struct thread *t);
/* Behind a call with this result, which is told and was made without the baton. */
long baton_take(struct thread *t, long result);
/* Its event is the next of the lane. */
void baton_meet(struct thread *t, const struct event *e);
/* A leader's, behind a call: another has it meanwhile.  Followers are told by EVENT_SIGNAL_NEXT. */
bool baton_lost(struct thread *t);
/* The thread has stood still, and goes on. */
void baton_resume(struct thread *t);

static inline bool event_is_baton(const struct event *e)
{
	return e->kind == EVENT_BATON;
}

#endif
