/* A leader's threads, programs and their ends, as they are told. */
#ifndef MVE_INSIDE_LIFE_H
#define MVE_INSIDE_LIFE_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

void lead_forks(struct thread *t);
void lead_exec_done(struct thread *t, int64_t outcome);
long lead_life(struct thread *t, long nr, const struct walk *w);

#endif
