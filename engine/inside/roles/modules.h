/* What the modules of the inside do where a process changes: modules.def has a row for each. */
#ifndef MVE_INSIDE_MODULES_H
#define MVE_INSIDE_MODULES_H

#include "engine/inside/gate/latch.h"

/* The process has followed, and takes over; the process has led, and is to follow. */
void modules_lead(struct thread *t);
/* The same of one that shares its parent's memory, and has but its own state in the kernel. */
void modules_lead_guest(struct thread *t);
void modules_follow(struct thread *t);
/* An execve is about to be made, and nobody knows a reason why it should fail. */
/*
 * All threads of a leader's process stand, and it is about to be copied: what a copy would not
 * have, or has given up before it looks, is learnt.  And: this is the copy, which is to follow.
 */
void modules_copy(struct thread *t);
void modules_copied(void);
void modules_exec(struct thread *t);
/*
 * Before a fork, and behind it in the process that forked: takes the latches, and gives back
 * those that it has got, as bits.
 */
uint32_t modules_fork_begin(void);
void modules_fork_end(uint32_t taken);
/* In the child. */
void modules_forked(struct thread *t);

#endif
