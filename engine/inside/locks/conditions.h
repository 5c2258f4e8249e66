/* Who is woken, for the day that a follower leads. */
#ifndef MVE_INSIDE_CONDITIONS_H
#define MVE_INSIDE_CONDITIONS_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/locks.h"

/*
 * A thread that is in a wait in earnest comes out of it, and begins a follower's, if its version
 * follows from here; or goes on.
 */
void lock_wait_goes_on(struct thread *t, uint64_t condition, bool woken);
void lock_wait_is_out(struct thread *t);

/* conditions.c, on the short way, too; 1: the wait is to be made in earnest. */
long lock_wait_begin(struct thread *t, struct lock_call *c);
long lock_wait_end(struct thread *t, struct lock_call *c);
long lock_wake(struct thread *t, struct lock_call *c);
/* The process is about to lead. */
void conditions_lead(struct thread *t);
/* Since then somebody has yet to come out of a wait, or to wait in earnest: turns are drawn. */
extern bool conditions_open;
void conditions_look(const struct thread *t);

#endif
