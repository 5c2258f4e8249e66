/* The long way of a call. */
#ifndef MVE_INSIDE_DISPATCH_H
#define MVE_INSIDE_DISPATCH_H

#include "engine/inside/gate/thread.h"

void dispatch(struct thread *t);
long serve_call(struct thread *t);
void dispatch_exit(struct thread *t);

#endif
