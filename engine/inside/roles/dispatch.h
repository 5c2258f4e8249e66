/* The long way of a call. */
#ifndef MVE_INSIDE_DISPATCH_H
#define MVE_INSIDE_DISPATCH_H

#include "engine/inside/gate/thread.h"

void dispatch(struct thread *t);
long serve_call(struct thread *t);
void dispatch_exit(struct thread *t);
/* What is left of a call in which mve failed, on the way back to the program. */
void failed_serve(struct thread *t);
bool serve_soft(struct thread *t, long nr, int64_t *value);

#endif
