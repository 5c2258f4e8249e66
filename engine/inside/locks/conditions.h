/* Who is woken, for the day that a follower leads. */
#ifndef MVE_INSIDE_CONDITIONS_H
#define MVE_INSIDE_CONDITIONS_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/locks.h"

/* conditions.c, on the short way, too; 1: the wait is to be made in earnest. */
long lock_wait_begin(struct thread *t, struct lock_call *c);
long lock_wait_end(struct thread *t, struct lock_call *c);
long lock_wake(struct thread *t, struct lock_call *c);
/* The process is about to lead. */
void conditions_lead(struct thread *t);

#endif
