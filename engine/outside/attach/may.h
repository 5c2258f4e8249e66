/* Whether mve may come to a process that runs: all that is known before anything is touched. */
#ifndef MVE_OUTSIDE_MAY_H
#define MVE_OUTSIDE_MAY_H

#include <stdbool.h>
#include <sys/types.h>

struct attach_no {
	const char *why;	/* in words; NULL: it may */
	const char *hint;
};

/* Of one process. */
struct attach_no attach_may(pid_t pid);

/* Of one that stands: what only a tracer is told.  -> by a thread of it. */
struct attach_no attach_may_still(pid_t tid);

/* mve's session that has it; false: none. */
bool attach_is_held(pid_t pid);

#endif
