/* The socket by which a follower's process is sent what it takes without asking for it. */
#ifndef MVE_INSIDE_WIRE_H
#define MVE_INSIDE_WIRE_H

#include "engine/inside/gate/thread.h"

/* A follower's program begins: the monitor is given the other end of the pair. */
void wire_begin(struct thread *t, const int32_t *pair);
/* A child has none, and its parent's is not its own to read. */
void wire_fork(struct thread *t);
/* Our end, where the monitor sends by it, to be closed; or -1: it wants to be asked. */
int32_t wire_take(const struct thread *t);
/* It still does, or has; and that may be looked for. */
bool wire_sends(void);
bool wire_soon(void);

#endif
