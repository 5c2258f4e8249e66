/*
 * Chunks without memory: the leader's half and the reader's; outside/spill/chunks.c has the
 * spiller's.
 *
 * Two handshakes.  Who is to write a chunk to a file marks it (LEAVES) and then looks whether it
 * is still in its lane, and how far followers look; a leader's thread takes it out of the lane
 * and then looks for the mark; a follower says how far it looks and then looks for the mark.
 * So either the chunk stays, or they know: the thread takes another, the follower waits.
 *
 * All words but the spiller's own can be written by a version: nothing here is an address, no
 * chunk's number is used unchecked, and no loop goes on for as long as a word says so.
 */
#include "engine/core/away.h"
#include "engine/core/host.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"

#define TRIES	8	/* at a word that only the spiller changes beside us */

/* --- the leader ------------------------------------------------------------------ */

/* What is the spiller's stays so, without its lane; else it is as new. */
static void chunk_begin(uint32_t *owner, uint32_t as_new)
{
	uint32_t was = LOOK(away, owner);

	for (int i = 0; i < TRIES && was != as_new; i++) {
		bool moves = chunk_is_away(was) && !(was & CHUNK_OUT);

		if (ANNOUNCE_IF(away, owner, &was, moves ? was & CHUNK_STATES : as_new))
			return;
	}
}

/* Spare ones at the end, which an ordinary search comes to last. */
static uint32_t chunk_as_new(const struct conduct *c, uint32_t i)
{
	uint32_t memory = chunks_in_memory(c), spare = memory - CHUNKS_SPARE(memory);

	MUST(c->chunks <= CHUNKS_MAX && c->away < c->chunks && spare);
	return i >= memory ? CHUNK_AWAY : i >= spare ? CHUNK_SPARE : 0;
}

void chunks_make(struct section *fresh, const struct conduct *c)
{
	for (uint32_t i = 0; i < c->chunks; i++)
		fresh->chunk_owner[i] = chunk_as_new(c, i);
}

void chunks_begin(struct section *own, const struct conduct *c)
{
	for (uint32_t i = 0; i < c->chunks; i++)
		chunk_begin(&own->chunk_owner[i], chunk_as_new(c, i));
}

bool chunk_ours(struct section *own, uint32_t chunk)
{
	uint32_t *owner = &own->chunk_owner[chunk];
	uint32_t was = LOOK(away, owner);

	for (int i = 0; i < TRIES && chunk_is_away(was); i++) {
		uint32_t to = was & CHUNK_OUT ? CHUNK_AWAY : was & CHUNK_STATES;

		if (ANNOUNCE_IF(away, owner, &was, to))
			return false;
	}
	return !chunk_is_away(was);
}

/* --- who reads ------------------------------------------------------------------- */

void looks_begin(struct streams *s, uint32_t index, uint32_t source)
{
	const struct lane *l = &streams_section(s, source)->lane[index];

	if (s->conduct->away)
		ANNOUNCE(away, &streams_section(s, s->self)->reach[index], lane_serial(l, 0) - 1);
}

/* Threads that look at another's lane may be further than that. */
static void reach_raise(uint32_t *reach, uint32_t serial)
{
	uint32_t was = LOOK(away, reach);

	for (int i = 0; i < TRIES && (int32_t)(serial - was) > 0; i++)
		if (ANNOUNCE_IF(away, reach, &was, serial))
			return;
}

bool chunk_enter_slow(struct reader *r, uint32_t chunk, uint64_t pos)
{
	struct section *own = streams_section(r->streams, r->streams->self);
	const uint32_t *owner = &r->from->chunk_owner[chunk];

	MUST(chunk < CHUNKS_MAX && r->index < LANES);
	reach_raise(&own->reach[r->index], lane_serial(&r->from->lane[r->index], pos));
	while (chunk_is_away(LOOK(away, owner)))
		if (!host_chunk(r))
			return false;
	r->here = (uint32_t)(pos / CHUNK_CELLS) + 1;
	return true;
}
