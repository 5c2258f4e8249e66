/* What time a follower is told. */
#ifndef MVE_INSIDE_FOLLOW_CLOCK_H
#define MVE_INSIDE_FOLLOW_CLOCK_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

void clock_note(const struct walk *call, long nr);
/* A reading that the leader did not make by this call; false: of no such clock. */
bool clock_own(struct thread *t, long nr, long *result);

#endif
