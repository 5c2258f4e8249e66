/* Children of a follower's process. */
#ifndef MVE_INSIDE_CHILDREN_H
#define MVE_INSIDE_CHILDREN_H

#include "engine/inside/gate/thread.h"

/* One was made, whose first thread reads this lane. */
void child_note(struct thread *t, int32_t vpid, int32_t pid, uint32_t lane);
/* The program has been told of a child's end: the twin goes, too. */
void follow_reaped(struct thread *t, int32_t vpid, int32_t status);
/* The same of one that the program may still wait for (WNOWAIT). */
void follow_peeked(struct thread *t, int32_t vpid, int32_t status);
/* For a version that took over: one's id of the other kind; 0: it has no such child. */
int32_t child_real(int32_t vpid);
int32_t child_seen(int32_t pid);
void child_gone(int32_t vpid);
/* Another has the kernel's id: whose it was is gone, though nobody has waited for it. */
void child_reused(int32_t pid);
void children_each(void (*each)(int32_t vpid, int32_t pid));
/* Whom the kernel knows as our child in its place; 0: itself. */
int32_t child_waited(int32_t vpid);
/* Those of whose end the program knows, and that are there, are not: it leads now. */
void children_settle(struct thread *t);
/* A child of fork has none of them. */
void children_fork(struct thread *t);

/* A leader's twin keeps them by the leader's ids, until children_moved says who they are. */
void children_copied(void);

/*
 * An image has gone on, or a twin: each is another process, and was another's child.  What the
 * parent is by now, whose id it `was`.
 */
int32_t children_moved(struct thread *t, int32_t was);
/* This process' parent, of which the kernel says that. */
int32_t parent_real(int32_t kernels);

#endif
