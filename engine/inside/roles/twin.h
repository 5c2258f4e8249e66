/* A twin of a leader's process: a copy that follows. */
#ifndef MVE_INSIDE_TWIN_H
#define MVE_INSIDE_TWIN_H

#include "engine/inside/gate/thread.h"

/*
 * All threads of this leader's process stand: makes the copy, and tells the monitor.  Comes
 * back in both.
 */
bool twin_make(struct thread *t, uint32_t number);
/* This process is one that has yet to follow. */
bool twin_is_new(void);
/* It leads. */
void twin_reset(struct thread *t);

#endif
