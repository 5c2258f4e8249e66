/*
 * Chunks that the spiller moves: its half of core/away.h.  Each step is one word; where a leader's
 * thread has taken its lane out of it meanwhile the chunk is nobody's, and free if it has memory.
 */
#include "engine/core/away.h"
#include "engine/core/holds.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/spill/chunks.h"

uint32_t chunk_reach(const struct streams *s, uint32_t version, uint32_t index)
{
	const struct section *its = streams_section(s, version);
	const struct lane *l = &streams_section(s, s->self)->lane[index];
	const struct cursor *c = &its->cursor[index];
	uint32_t base = lane_serial(l, 0), reach = LOOK(away, &its->reach[index]);
	uint32_t life = __atomic_load_n(&l->life, __ATOMIC_RELAXED);

	if (CONSUME(cursor_source, &c->source) != s->self || CONSUME(cursor_life, &c->life) != life)
		return base - 1;
	return reach;
}

static bool version_looks(const struct streams *s, uint32_t version, uint32_t index,
			  uint32_t serial, uint32_t ahead)
{
	if (s->conduct->keeps >> version & 1)
		return false;
	return s->conduct->mute >> version & 1 ||
	       (int32_t)(serial - chunk_reach(s, version, index)) <= (int32_t)ahead;
}

/* The leader's thread writes there no more, and nobody has taken it since. */
static bool is_full(const struct lane *l, uint32_t serial)
{
	uint64_t head = CONSUME(lane_head, &l->head);
	uint32_t oldest = (uint32_t)(LOOK(away, &l->oldest) >> 32);

	return (int32_t)(serial - oldest) >= 0 && (int32_t)(serial - lane_serial(l, head)) < 0;
}

bool chunk_may_leave(const struct streams *s, uint32_t index, uint32_t serial, uint32_t ahead)
{
	const struct section *own = streams_section(s, s->self);
	const struct lane *l = &own->lane[index];
	uint32_t bits = streams_followers(s, own);
	bool held = false;

	MUST(index < LANES);
	bits &= __atomic_load_n(&l->readers, __ATOMIC_RELAXED) | 1u << ROW_START;
	for (uint32_t v = 0; v < VERSIONS; v++) {
		/* What an image holds, and nobody has to read, the leader has when it needs it. */
		if (!(bits >> v & 1) || !version_reads(s, own, v, index, serial))
			continue;
		held = true;
		if (version_looks(s, v, index, serial, ahead))
			return false;
	}
	return held && is_full(l, serial);
}

/* From a word that is the spiller's; `given_up`: what becomes of it if its lane was taken out. */
static bool owner_set(struct section *own, uint32_t chunk, uint32_t was, uint32_t to,
		      uint32_t given_up)
{
	uint32_t *owner = &own->chunk_owner[chunk], is = was;

	MUST(chunk < CHUNKS_MAX);
	if (ANNOUNCE_IF(away, owner, &is, to))
		return true;
	was &= CHUNK_STATES;
	if (is == was)
		ANNOUNCE_IF(away, owner, &is, given_up);
	return false;
}

bool chunk_leave(const struct streams *s, uint32_t index, uint32_t chunk, uint32_t serial,
		 uint32_t ahead)
{
	struct section *own = streams_section(s, s->self);
	uint32_t lane = index + 1;

	MUST(chunk < CHUNKS_MAX);
	if (!ANNOUNCE_IF(away, &own->chunk_owner[chunk], &lane, CHUNK_LEAVES | lane))
		return false;
	if (chunk_may_leave(s, index, serial, ahead))
		return true;
	chunk_stays(own, index, chunk);
	return false;
}

bool chunk_left(const struct streams *s, uint32_t index, uint32_t chunk, uint32_t serial)
{
	struct section *own = streams_section(s, s->self);
	uint32_t lane = index + 1;

	if (chunk_may_leave(s, index, serial, 0))
		return owner_set(own, chunk, CHUNK_LEAVES | lane, CHUNK_GOES | lane, 0);
	chunk_stays(own, index, chunk);
	return false;
}

void chunk_stays(struct section *own, uint32_t index, uint32_t chunk)
{
	owner_set(own, chunk, CHUNK_LEAVES | (index + 1), index + 1, 0);
}

/* Its lane, if it has still one. */
static uint32_t lane_of(const struct section *own, uint32_t chunk)
{
	MUST(chunk < CHUNKS_MAX);
	return __atomic_load_n(&own->chunk_owner[chunk], __ATOMIC_RELAXED) & ~CHUNK_STATES;
}

void chunk_gone(struct section *own, uint32_t chunk)
{
	uint32_t lane = lane_of(own, chunk);

	owner_set(own, chunk, CHUNK_GOES | lane, lane ? CHUNK_OUT | lane : CHUNK_AWAY, CHUNK_AWAY);
}

bool chunk_comes(struct section *own, uint32_t index, uint32_t chunk)
{
	uint32_t out = CHUNK_OUT | (index + 1);

	MUST(chunk < CHUNKS_MAX);
	return ANNOUNCE_IF(away, &own->chunk_owner[chunk], &out, CHUNK_GOES | (index + 1));
}

void chunk_came(struct section *own, uint32_t chunk)
{
	uint32_t lane = lane_of(own, chunk);

	/* Who waits for it sees what it holds. */
	owner_set(own, chunk, CHUNK_GOES | lane, lane, 0);
}

bool chunk_withdraw(struct section *own, uint32_t chunk)
{
	uint32_t none = 0;

	MUST(chunk < CHUNKS_MAX);
	return ANNOUNCE_IF(away, &own->chunk_owner[chunk], &none, CHUNK_GOES);
}

bool chunk_grant(struct section *own, uint32_t chunk)
{
	uint32_t away = CHUNK_AWAY;

	MUST(chunk < CHUNKS_MAX);
	if (!ANNOUNCE_IF(away, &own->chunk_owner[chunk], &away, 0))
		return false;
	__atomic_store_n(&own->chunk_hint, chunk, __ATOMIC_RELAXED);
	return true;
}
