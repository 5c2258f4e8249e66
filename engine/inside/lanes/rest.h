/* What is left of a call's time, where it is made again. */
#ifndef MVE_INSIDE_REST_H
#define MVE_INSIDE_REST_H

#include "engine/inside/gate/thread.h"

void rest_begin(void);
/* How long the call has lasted, in nanoseconds. */
int64_t rest_gone(const struct thread *t);
/* Time ends it: its row and its arguments say so. */
bool rest_is(long nr, const uint64_t args[]);
/* The kernel has made it, and was interrupted: it may have written what is left. */
void rest_cut(struct thread *t, long nr, const uint64_t args[]);

#endif
