/*
 * Whether one process may have what another has open.  Which process it is the twin of is
 * what its version says, and a worker may name one that has more rights than it.
 */
#ifndef MVE_OUTSIDE_RIGHTS_H
#define MVE_OUTSIDE_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

bool rights_cover(pid_t asker, pid_t twin);

#endif
