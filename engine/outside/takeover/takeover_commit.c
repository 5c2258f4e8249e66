/*
 * Taking over, done: the old leader stands.  Its stream ends, the successor's begins,
 * and from here on nothing can be undone.
 */
#include <stdio.h>
#include <string.h>

#include "engine/core/away.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/late/kept.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/record/recorder.h"
#include "engine/outside/rules/rules_at_work.h"
#include "engine/outside/spill/spill.h"
#include "engine/outside/takeover/takeover_parts.h"

void conduct_bit(uint32_t *bits, uint32_t version, bool on)
{
	MUST(version < VERSIONS);
	if (on)
		BOTH_BY(conduct_bits, fetch_or, bits, 1u << version);
	else
		BOTH_BY(conduct_bits, fetch_and, bits, ~(1u << version));
}

static bool done_by_all(struct monitor *m, const struct move *mv, uint32_t lane)
{
	uint32_t life = lane_at(m, mv->from->index, lane)->life;

	for (unsigned i = 0; i < m->versions; i++)
		if (m->conduct->following >> i & 1 &&
		    cursor_at(m, i, lane)->done != life)
			return false;
	return true;
}

/* It has been a stream's before, of as many lanes: those and their chunks are as new. */
static void section_clear(struct monitor *m, const struct move *mv, uint32_t realm, uint32_t lanes)
{
	struct section *to = realm_part(m, realm, mv->to->index);

	MUST(lanes <= LANES);
	chunks_begin(to, m->conduct);
	spill_forget(m, realm, mv->to->index);
	to->chunk_hint = to->dropped = to->strayed = 0;
	memset(to->faulted, 0, lanes * sizeof(to->faulted[0]));
	memset(to->left, 0, lanes * sizeof(to->left[0]));
}

/*
 * The successor's section as the beginning of a stream: no chunk, the same lanes.  One that has
 * never led has all of that already, and clients wait.
 */
static void section_begin(struct monitor *m, const struct move *mv, uint32_t realm)
{
	const struct section *from = realm_part(m, realm, mv->from->index);
	struct section *to = realm_part(m, realm, mv->to->index);
	/* Lanes behind these were never opened: they are as they should be. */
	uint32_t lanes = section_lanes(from), ours = section_lanes(to);

	MUST(lanes <= LANES && ours <= LANES && from != to);

	if (ours)
		section_clear(m, mv, realm, ours);
	to->lanes_high = lanes;
	for (uint32_t i = 0; i < lanes || i < ours; i++) {
		const struct lane *was = &from->lane[i];
		struct lane *l = &to->lane[i];
		bool used = i < lanes && was->state != LANE_FREE &&
			    !(was->state == LANE_CLOSED && done_by_all(m, mv, realm * LANES + i));
		uint32_t life = l->life;

		*l = (struct lane){ .first = CHUNK_NONE, .now = CHUNK_NONE, .oldest = CHUNK_NONE,
				    .readers = ~0u };
		l->state = used ? was->state : LANE_FREE;
		/* Lives go on: who read one of before would seem to be done with a new one. */
		l->life = used || was->life > life ? was->life : life;
	}
}

/*
 * The old leader reads its successor's stream from the beginning, each lane by who wrote it.
 * Of whoever read it when this version followed before nothing may be left: the lane would
 * seem to be a dead thread's, and be given to another while its own still stands.
 */
static void cursors_begin(struct monitor *m, const struct move *mv, uint32_t realm)
{
	const struct section *to = realm_part(m, realm, mv->to->index);
	struct section *from = realm_part(m, realm, mv->from->index);
	struct streams s = { m->realm[realm].conduct, mv->from->index };

	MUST(mv->keep);

	for (uint32_t i = 0; i < section_lanes(to); i++) {
		if (to->lane[i].state != LANE_OPEN)
			continue;
		from->cursor[i].owner = from->lane[i].owner;
		from->cursor[i].pid = from->lane[i].pid;
		cursor_begin(&s, i, to->lane[i].life, mv->to->index);
	}
}

void streams_switch(struct monitor *m, const struct move *mv)
{
	struct conduct *c = m->conduct;
	uint32_t from = mv->from->index, to = mv->to->index;

	MUST(from == m->leader && to != from && to < m->versions);

	for (uint32_t r = 0; r < m->realms; r++) {
		section_begin(m, mv, r);
		if (mv->keep)
			cursors_begin(m, mv, r);
	}
	conduct_bit(&c->following, to, false);
	conduct_bit(&c->following, from, mv->keep);
	c->next[from] = to;
	c->next[to] = to;
	recorder_died(mv->forced ? mv->cause : "");
	/* Whose stream goes on is known. */
	PUBLISH(conduct_leader, &c->leader, to);
	kept_end(m);
	conduct_bit(&c->crashed, from, mv->forced);
	conduct_bit(&c->crashed, to, false);
	conduct_bit(&c->ended, to, false);
	conduct_bit(&c->park, to, false);
	/* Who sees that the stream has ended sees what comes next. */
	conduct_bit(&c->ended, from, true);
	streams_changed(m);
}

/* --- the versions --------------------------------------------------------------------- */

void versions_switch(struct monitor *m, const struct move *mv)
{
	struct version *from = mv->from, *to = mv->to;

	MUST(from != to && from->index == m->leader);
	from->parked = true;
	from->state = VERSION_LEAVES;
	to->state = VERSION_LEADS;
	m->leader = to->index;
	if (mv->keep)
		rules_pass(to, from);
	snprintf(from->why, sizeof(from->why), "%s", mv->cause);
	to->why[0] = 0;
}
