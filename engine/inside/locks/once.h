/* What is run once by whoever comes first: the leader's thread. */
#ifndef MVE_INSIDE_ONCE_H
#define MVE_INSIDE_ONCE_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/locks.h"

bool once_turn_end(struct thread *t);
long once_ask(struct thread *t, struct lock_call *c);

#endif
