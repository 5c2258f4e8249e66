/* The monitor hears of a pid namespace before there is a process in it. */
#ifndef MVE_INSIDE_PIDS_H
#define MVE_INSIDE_PIDS_H

#include "engine/inside/gate/thread.h"

/* A clone with these flags is about to be made. */
void pids_clone(struct thread *t, uint64_t flags);
/* unshare, setns. */
long serve_namespace(struct thread *t, long nr);

#endif
