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
/* A child that is no thread: nobody takes turns with it.  `copied`: its parent's others neither. */
void baton_alone(struct thread *t, bool copied);
/* It takes part. */
bool baton_applies(const struct thread *t);
/* The call may wait for another, who is to work meanwhile. */
bool baton_lets_go(const struct call_desc *d);
/* A leader's: in front of a call that is told, and does not wait. */
void baton_yield(struct thread *t);
/* Behind a call with this result, which is told and was made without the baton. */
long baton_take(struct thread *t, long result);
/* The call says how many threads it has woken. */
bool baton_wakes(const struct call_desc *d);
/* A leader's, behind a call that says whom it has woken. */
void baton_tell(struct thread *t, long result);
/* Its event is the next of the lane; true: a signal has come with it. */
bool baton_meet(struct thread *t, const struct event *e);
/*
 * A leader's, behind a call: it has not got it, which the row does not say.  Followers are told by
 * EVENT_SIGNAL_NEXT.
 */
bool baton_missed(struct thread *t, const struct call_desc *d);
/* The thread has stood still, and goes on. */
void baton_resume(struct thread *t);

static inline bool event_is_baton(const struct event *e)
{
	return e->kind == EVENT_BATON;
}

/* And tells of no turn, but of whom a call has woken. */
static inline bool event_wakes(const struct event *e)
{
	return event_is_baton(e) && !__atomic_load_n(&e->arg[1], __ATOMIC_RELAXED);
}

static inline bool event_is_turn(const struct event *e)
{
	return event_is_baton(e) && !event_wakes(e);
}

/* --- hold.c: who has it ------------------------------------------------------------------ */

enum hold { HOLD_NOT, HOLD_TAKEN, HOLD_AWAY };

/* It has it from here on. */
void hold_begin(struct thread *t);
/* The process is a copy, with one thread. */
void hold_alone(void);
void hold_give(struct thread *t);
/* The thread is about to end. */
void hold_leave(struct thread *t);
/* A leader's: others may have it while the thread is in a call. */
void hold_lend(struct thread *t);
/* Behind that, or elsewhere; false: another has it. */
bool hold_back(struct thread *t);
/* Somebody sleeps for it. */
bool hold_is_wanted(void);
/* Not: the thread is asked to stand still.  `lost`: the leader's has taken it away. */
enum hold hold_take(struct thread *t, bool lost);

#endif
