/* What a follower takes when it comes to lead: descriptors, and what comes with them. */
#ifndef MVE_INSIDE_TAKE_H
#define MVE_INSIDE_TAKE_H

#include "engine/inside/gate/thread.h"

struct taker;
/* One thread of a process takes, and says when all is done; NULL: another has, and did. */
struct taker *take_begin(struct thread *t);
void take_end(struct taker *r);
/* A process that has another's memory: that one does for both what memory knows. */
bool take_is_guest(const struct thread *t);
/* What modules.def says of it; to tell the monitor that this process leads. */
void take_descriptors(struct thread *t);
void take_reset(struct thread *t);
void take_fork(struct thread *t);
void took_note(struct thread *t);
/* A follower's process begins; a descriptor has been given to its leader's. */
void room_make(struct thread *t);
void room_fork(struct thread *t);
void take_opened(int64_t fd);
/* This process leads, whatever this thread has still to read. */
bool take_is_done(void);
/* A leader's program is about to close a descriptor. */
void take_closing(const struct thread *t, int32_t fd);

#endif
