/* The follower: its calls meet events. */
#ifndef MVE_INSIDE_FOLLOW_H
#define MVE_INSIDE_FOLLOW_H

#include "engine/inside/gate/thread.h"

#define AHEAD_EVENTS	64	/* that may be answered before their turn */
_Static_assert(AHEAD_EVENTS == 64, "bits of a thread's `ahead`, all of them");
long follow_call(struct thread *t, long nr);
void follow_begin(struct thread *t);

#define PASSED	(-513L)		/* the event was not for us, another is; no result of a call */

/* For its neighbours: what follow.c does with a call. */
enum step_result { STEP_DONE, STEP_OWN, STEP_AGAIN, STEP_NO_RULE };

#endif
