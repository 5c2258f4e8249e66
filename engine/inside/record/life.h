/* A leader's threads, programs and their ends, as they are told; what a clone asks for. */
#ifndef MVE_INSIDE_LIFE_H
#define MVE_INSIDE_LIFE_H

#include <linux/sched.h>

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

void lead_forks(struct thread *t);
void lead_exec_done(struct thread *t, int64_t outcome);
/* What a clone of any form asks for; and the descriptor that it gave for the child, or -1. */
struct clone_args clone_asked(const struct thread *t, long nr);
/* For its child's program, which may wait for others.  (vfork's row says so.) */
bool clone_waits(const struct thread *t, long nr);
int64_t clone_pidfd(const struct thread *t, long nr);
/* Where the program looks for the child's id: found before the call, put right behind it. */
void child_ids_find(struct thread *t, const struct clone_args *args);
void child_ids_parent(const struct thread *t, int32_t real, int32_t id);
void child_ids(const struct thread *c);
long lead_life(struct thread *t, long nr, const struct walk *w);

#endif
