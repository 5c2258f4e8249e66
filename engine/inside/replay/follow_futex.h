/* Who sleeps in a follower. */
#ifndef MVE_INSIDE_FOLLOW_FUTEX_H
#define MVE_INSIDE_FOLLOW_FUTEX_H

#include "engine/inside/gate/thread.h"

/* Takes an EVENT_SIGNAL: the program's handler runs at the end of this call. */
long follow_futex(struct thread *t);

#endif
