/* Which way a call takes: the short, the told or the long one. */
#ifndef MVE_INSIDE_WAYS_H
#define MVE_INSIDE_WAYS_H

#include "engine/inside/gate/thread.h"

/* Each call gets its slot; each slot its way. */
void slots_fill(void);
enum way {
	WAY_SHORT,	/* in place */
	WAY_LONG,	/* by dispatch() */
	WAY_TOLD,	/* in place, and then written down, where a leader's thread makes it */
};
void way_set(unsigned slot, enum way way);

/* Why no call of the process may go the told way, as bits. */
enum tell_off {
	TELL_THREADS = 1,	/* it has begun a second one, since it was forked */
	TELL_PRIVATE = 2,	/* it has a private file open */
	TELL_RUNTIME = 4,	/* a sanitizer's, whose calls are its own */
};
extern uint32_t tell_off;
void tell_stop(enum tell_off why);
void tell_go(enum tell_off why);
/* A call that is made in place, or is about to be, is at this address. */
bool in_short_call(uint64_t rip);

#endif
