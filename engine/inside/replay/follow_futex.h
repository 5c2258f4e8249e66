/* Who sleeps in a follower. */
#ifndef MVE_INSIDE_FOLLOW_FUTEX_H
#define MVE_INSIDE_FOLLOW_FUTEX_H

#include "engine/inside/gate/thread.h"

/* Takes an EVENT_SIGNAL: the program's handler runs at the end of this call. */
long follow_futex(struct thread *t);

/*
 * One at a time: what the leader's sleep came to, for a follower's does not sleep there.
 * FOLLOW_LEADS: it is to be made for real.
 */
#define FOLLOW_LEADS	(-513L)
long follow_local(struct thread *t);
/* The same of a call that says whom it has woken: it is made, and answers what the leader's did. */
long follow_wakes(struct thread *t, long nr);

#endif
