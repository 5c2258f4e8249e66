/* Signals that a leader was told, for its follower. */
#ifndef MVE_INSIDE_FOLLOW_SIGNAL_H
#define MVE_INSIDE_FOLLOW_SIGNAL_H

#include "engine/inside/gate/thread.h"

void follow_signal(struct thread *t, const struct event *e);
void follow_signal_next(struct thread *t, long nr, long result);

#endif
