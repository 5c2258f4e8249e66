/* Unknown code: the seal, arming threads, watched pages. */
#ifndef MVE_INSIDE_SEAL_H
#define MVE_INSIDE_SEAL_H

#include "engine/inside/gate/thread.h"

void seal_arm(struct thread *t);
void seal_break(struct thread *t);
void seal_look(struct thread *t);
void seal_fork(struct thread *t);
void seal_arm_wanted(struct thread *t);
void guard_add(struct thread *t, uint64_t page);
/* Watches a page: false: it cannot be. */
bool guard_take(uint64_t page);
/* All pages that are watched may be run again. */
void guards_end(void);
bool guard_met(struct thread *t, uint64_t address);

#endif
