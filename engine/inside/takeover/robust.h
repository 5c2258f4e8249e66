/* What a thread holds of robust mutexes when it ends. */
#ifndef MVE_INSIDE_ROBUST_H
#define MVE_INSIDE_ROBUST_H

#include "engine/inside/gate/thread.h"

/* It is about to end: whoever waits for them hears of that. */
void robust_leave(const struct thread *t);

#endif
