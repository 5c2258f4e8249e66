/* Which calls take the long way in which role. */
#ifndef MVE_INSIDE_LONG_WAY_H
#define MVE_INSIDE_LONG_WAY_H

#include "engine/inside/gate/thread.h"

/* Once in a process, however mve came to it; and when its role has changed. */
void ways_begin(void);
void ways_fill(void);
void ways_follow(struct thread *t);
/* Behind the tables of a leader: where threads work in turns no call is made in place. */
void ways_baton(void);

#endif
