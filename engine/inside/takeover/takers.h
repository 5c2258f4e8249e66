/* Which of a version's processes have taken what the old leader had. */
#ifndef MVE_INSIDE_TAKERS_H
#define MVE_INSIDE_TAKERS_H

#include "engine/inside/gate/thread.h"

struct taker;
/* One thread of a process takes, and says when all is done; NULL: another has, and did. */
struct taker *take_begin(struct thread *t);
void take_end(struct taker *r);
/* This process leads, whatever this thread has still to read. */
bool take_is_done(void);
/* A follower begins. */
void takers_ready(void);
/* What modules.def says of it. */
void take_reset(struct thread *t);
void take_fork(struct thread *t);

#endif
