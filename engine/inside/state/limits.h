/* How many descriptors a follower's program believes that it may have. */
#ifndef MVE_INSIDE_LIMITS_H
#define MVE_INSIDE_LIMITS_H

#include "engine/inside/gate/thread.h"

struct limit { uint64_t now, max; };

/* A call about a limit: addresses in the program, or 0; which argument says what is set. */
struct limit_call { uint32_t resource; unsigned set_arg; uint64_t set, get; };

/* What the call asks for; false: it is no such call, or about another process. */
bool limits_call(const struct thread *t, long nr, struct limit_call *c);

/* A follower makes a call that its leader has made; true: it is kept, and not to be made. */
bool limits_keep(const struct thread *t, long nr);
/* A query that the leader did not make; true: it is answered from what is kept. */
bool limits_asked(struct thread *t, long nr, long *result);
/* Room for what is taken; behind it the limit is what the program believes. */
void limits_lift(void);
void limits_settle(struct thread *t);
/* A program that begins has what was kept for real: of the inside nothing stays. */
void limits_exec(struct thread *t);
/* From leader to follower. */
void limits_follow(struct thread *t);

#endif
