/* Threads and programs of a follower. */
#ifndef MVE_INSIDE_FOLLOW_LIFE_H
#define MVE_INSIDE_FOLLOW_LIFE_H

#include "engine/inside/gate/thread.h"

/* A difference in what the twin of a program or of an end was given: before its row ends. */
void life_compare(struct thread *t, long nr, const struct event *e);
long follow_life(struct thread *t, long nr, const struct event *e);

#endif
