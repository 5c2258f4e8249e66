/* Which calls take the long way in which role. */
#ifndef MVE_INSIDE_LONG_WAY_H
#define MVE_INSIDE_LONG_WAY_H

#include "engine/inside/gate/thread.h"

void ways_fill(void);
void ways_follow(struct thread *t);

#endif
