/* What a follower takes when it comes to lead: descriptors, and what comes with them. */
#ifndef MVE_INSIDE_TAKE_H
#define MVE_INSIDE_TAKE_H

#include "engine/inside/fd/numbers.h"
#include "engine/inside/gate/thread.h"

/* What modules.def says of it; to tell the monitor that this process leads. */
void take_descriptors(struct thread *t);
void took_note(struct thread *t);
/* A follower's process begins, or one follows; a descriptor has been given to its leader's. */
void room_ready(struct thread *t);
void room_make(struct thread *t);
/* A follower's program begins: the pair by which it may be sent what it takes (wire.h). */
void take_wire(struct thread *t);
void room_fork(struct thread *t);
void take_opened(int64_t fd);
/*
 * A leader's program is about to give up descriptors; `by`: a copy of this one is to be in the
 * place of the only one, -1: none.
 */
void take_closing(const struct thread *t, struct numbers gone, int32_t by);

#endif
