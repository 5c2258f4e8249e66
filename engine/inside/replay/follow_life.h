/* Threads, programs and children of a follower. */
#ifndef MVE_INSIDE_FOLLOW_LIFE_H
#define MVE_INSIDE_FOLLOW_LIFE_H

#include "engine/inside/gate/thread.h"

/* A difference in what the twin of a program or of an end was given: before its row ends. */
void life_compare(struct thread *t, long nr, const struct event *e);
long follow_life(struct thread *t, long nr, const struct event *e);
void follow_reaped(struct thread *t, int32_t vpid, int32_t status);
/* The same of one that the program may still wait for. */
void follow_peeked(struct thread *t, int32_t vpid, int32_t status);
void child_ids(struct thread *c);
/* The descriptor that a clone has given for the child; -1: it was asked for none. */
int64_t clone_pidfd(const struct thread *t, long nr);
int32_t child_real(int32_t vpid);
int32_t child_seen(int32_t pid);
void child_gone(int32_t vpid);
/* Those of whose end the program knows, and that are there, are not: it leads now. */
void children_settle(struct thread *t);
/* A child of fork has none of them. */
void children_fork(struct thread *t);

#endif
