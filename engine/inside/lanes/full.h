/* A full ring: who waits for room, and who gives it. */
#ifndef MVE_INSIDE_FULL_H
#define MVE_INSIDE_FULL_H

#include "engine/core/ring.h"

int host_lane(struct writer *w);
/* What was told in a spare chunk: waits for another to give for it. */
void host_settle(struct writer *w);
/* A follower's: what it has read may be used again. */
void room_give(const struct reader *r);

/* The same, once for a chunk: behind what may have moved the thread's cursor. */
static inline void room_look(struct reader *r)
{
	uint8_t chunk = (uint8_t)(r->cursor->at / CHUNK_CELLS);

	if (__builtin_expect(chunk == r->given, 1))
		return;
	r->given = chunk;
	room_give(r);
}

#endif
