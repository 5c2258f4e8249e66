/*
 * Chunks without memory (--when-full spill): the words by which three go by one another.
 *
 *	the leader's threads	take a chunk out of its lane when all have read it (chunk_ours)
 *	who reads		says how far it looks, and waits until that is in memory
 *				(chunk_enter)
 *	the *spiller*		writes to a file what nobody looks at, and brings it back
 *				(outside/spill/chunks.h)
 *
 * An owner's word that has one of CHUNK_LEAVES, GOES, OUT is the spiller's, but that a leader's
 * thread takes its lane out of it when it needs the chunk no longer: what becomes of its memory
 * is the spiller's business then.  Each word says what is true at that time, memory or file, so
 * another spiller goes on where one was killed.
 */
#ifndef MVE_CORE_AWAY_H
#define MVE_CORE_AWAY_H

#include "engine/core/ring.h"

#define CHUNK_STATES	(CHUNK_OUT | CHUNK_GOES | CHUNK_LEAVES)

/* It is, or may soon be, without memory. */
static inline bool chunk_is_away(uint32_t owner)
{
	return owner != CHUNK_SPARE && owner & CHUNK_STATES;
}

static inline uint32_t chunks_in_memory(const struct conduct *c)
{
	return c->chunks - c->away;
}

/* Serials of a life begin at its lane's `base`. */
static inline uint32_t lane_serial(const struct lane *l, uint64_t at)
{
	return __atomic_load_n(&l->base, __ATOMIC_RELAXED) + (uint32_t)(at / CHUNK_CELLS);
}

/* A section's chunks as they are where nobody has used any; the spare ones among them. */
void chunks_make(struct section *fresh, const struct conduct *c);
/* The same, of one that the spiller may be at. */
void chunks_begin(struct section *own, const struct conduct *c);
/* It was taken out of its lane; false: it has no memory, and is no chunk to write to. */
bool chunk_ours(struct section *own, uint32_t chunk);

/* A cursor begins: nothing is looked at. */
void looks_begin(struct streams *s, uint32_t index, uint32_t source);
bool chunk_enter_slow(struct reader *r, uint32_t chunk, uint64_t pos);
/* Before the cell is looked at; waits until its chunk is in memory. false: it will not be. */
static inline bool chunk_enter(struct reader *r, uint32_t chunk, uint64_t pos)
{
	return !r->streams->conduct->away || r->here == (uint32_t)(pos / CHUNK_CELLS) + 1 ||
	       chunk_enter_slow(r, chunk, pos);
}

#endif
