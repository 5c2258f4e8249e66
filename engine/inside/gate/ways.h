/* Which way a call takes: the short one, or the long one. */
#ifndef MVE_INSIDE_WAYS_H
#define MVE_INSIDE_WAYS_H

#include "engine/inside/gate/thread.h"

/* Each call gets its slot; each slot its way. */
void slots_fill(void);
void way_set(unsigned slot, bool slow);
/* A call that is made in place, or is about to be, is at this address. */
bool in_short_call(uint64_t rip);

#endif
