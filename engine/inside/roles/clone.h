/* clone, clone3, fork, vfork. */
#ifndef MVE_INSIDE_CLONE_H
#define MVE_INSIDE_CLONE_H

#include "engine/inside/gate/thread.h"

long serve_clone(struct thread *t, long nr);
void child_begin(struct thread *t);
void thread_fork(struct thread *t);

#endif
