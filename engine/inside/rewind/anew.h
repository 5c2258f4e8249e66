/* A copy of this process, and threads that are made anew in it. */
#ifndef MVE_INSIDE_ANEW_H
#define MVE_INSIDE_ANEW_H

#include "engine/inside/gate/thread.h"

/* All threads stand: a fork, by these flags, which is its parent's sibling and has one thread. */
long process_copy(uint64_t flags);
/* The same, and nobody's child of ours: the kernel gives it to whom it gives orphans. */
long process_copy_away(uint64_t flags);
/* In the copy: who it is now, and its one thread. */
void process_anew(struct thread *t);
/* The same; each other thread is made of its stance, and waits. */
void threads_anew(struct thread *t);
/* They go on. */
void threads_go(void);
/* A thread that has just been made of its stance. */
void thread_is_anew(struct thread *t);

#endif
