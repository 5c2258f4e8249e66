/* Which way a call takes, and the long way. */
#ifndef MVE_INSIDE_DISPATCH_H
#define MVE_INSIDE_DISPATCH_H

#include "engine/inside/gate/thread.h"

void dispatch(struct thread *t);
long serve_call(struct thread *t);
/* The inside has code of its own for it. */
bool call_is_special(long nr);
void roles_fill(void);
void roles_follow(struct thread *t);

#endif
