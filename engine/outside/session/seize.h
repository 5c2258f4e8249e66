/* Seizing a thread, whose process may be on its way through an execve that has no end. */
#ifndef MVE_OUTSIDE_SEIZE_H
#define MVE_OUTSIDE_SEIZE_H

#include <sys/types.h>

/* PTRACE_SEIZE with these options: 0 or a negative errno; -ETIME: it would have to wait. */
int thread_seize(pid_t tid, long options);

#endif
