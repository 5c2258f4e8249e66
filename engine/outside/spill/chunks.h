/* The spiller's steps with a chunk; the words are core/away.h's. */
#ifndef MVE_OUTSIDE_SPILL_CHUNKS_H
#define MVE_OUTSIDE_SPILL_CHUNKS_H

#include "engine/core/ring.h"

/* The last chunk of the lane that the version looks at; none of a life that it has not begun. */
uint32_t chunk_reach(const struct streams *s, uint32_t version, uint32_t index);
/*
 * The lane's chunk is full, somebody has to read it, and nobody looks at it or at one
 * of the `ahead` before it.
 */
bool chunk_may_leave(const struct streams *s, uint32_t index, uint32_t serial, uint32_t ahead);
/* LEAVES, if it may; then, once it is written: GOES, or true no longer; at last: OUT. */
bool chunk_leave(const struct streams *s, uint32_t index, uint32_t chunk, uint32_t serial,
		 uint32_t ahead);
bool chunk_left(const struct streams *s, uint32_t index, uint32_t chunk, uint32_t serial);
/* It is not written: it stays. */
void chunk_stays(struct section *own, uint32_t index, uint32_t chunk);
/* It has no memory any more. */
void chunk_gone(struct section *own, uint32_t chunk);
/* OUT to GOES; and then it is in memory. */
bool chunk_comes(struct section *own, uint32_t index, uint32_t chunk);
void chunk_came(struct section *own, uint32_t chunk);
/* A free chunk is the spiller's (GOES), until it is gone; one without memory becomes free. */
bool chunk_withdraw(struct section *own, uint32_t chunk);
bool chunk_grant(struct section *own, uint32_t chunk);

#endif
