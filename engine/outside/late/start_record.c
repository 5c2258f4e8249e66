/*
 * What the leader's start told, kept for followers that come late: they begin as it
 * did, from this record, and go on in its stream at a seam (inside/sample/seam.c).
 *
 * The record is a section of the streams that no version has, ROW_START.  While the
 * start lasts we read the leader's lanes as a follower does, and copy them cell by
 * cell into lanes of the same number.  A lane's start ends at its last seam before it
 * has to do with connections behind the first, or before it is silent for a while; a
 * lane without a seam is kept as far as it came, and its twin goes no further.  What
 * does not fit, or what the leader would have to wait for, is lost, and with it the
 * possibility to come late: never the leader's time.
 *
 * The leader may be far ahead when we look.  So all its lanes are held for us, from
 * where we are in them, up to the end of the start, told to us or not: where a lane's
 * start is over we say so in our cursor.  What was copied by the time that nothing is
 * held any more is the start.
 */
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/late/start_record.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"

/*
 * Limit (sampling): bytes of a leader's start that are kept for followers that come late,
 * or the ring if that is smaller. Beyond: mve follow is refused, and says so.
 */
#define RECORD_BYTES	(16u << 20)
#define QUIET_MS	500		/* so long nothing comes: the start is over */
#define ALONE_MS	10000		/* the same before a first connection has ended */
#define LOOK_MS		10
#define US		(1u << ROW_START)

static struct section *record(const struct monitor *m)
{
	return streams_part(m, ROW_START);
}

static void leave(struct monitor *m)
{
	streams_follow(m, ROW_START, false);
}

static void lost(struct monitor *m, const char *why)
{
	MUST(m->start.state == START_READS);
	m->start.state = START_LOST;
	snprintf(m->start.why, sizeof(m->start.why), "%s", why);
	say_log("start", "%s: the start is not kept: %s", m->session.name, why);
	leave(m);
}

void start_record_begin(struct monitor *m)
{
	struct streams s = { m->conduct, ROW_START };

	if (!options_joinable(m->options))
		return;
	MUST(m->start.state == START_NONE && m->versions <= ROW_START);
	m->start.state = START_READS;
	m->start.moved_ms = now_ms();
	m->conduct->next[ROW_START] = 0;
	cursor_begin(&s, 0, streams_part(m, 0)->lane[0].life, 0);
	m->conduct->following |= US;
}

/* A chunk of the record's own; CHUNK_NONE: it is full. */
static uint32_t chunk_new(struct monitor *m)
{
	uint32_t n = m->start.chunks;

	if (n == m->conduct->chunks || n == RECORD_BYTES / CHUNK_SIZE)
		return CHUNK_NONE;
	MUST(n < m->conduct->chunks);
	m->start.chunks++;
	return n;
}

static uint8_t *cell_at(struct section *s, uint32_t chunk, uint64_t pos)
{
	MUST(chunk < CHUNKS_MAX);
	return (uint8_t *)s + sizeof(*s) + (uint64_t)chunk * CHUNK_SIZE +
	       pos % CHUNK_CELLS * CELL_SIZE;
}

static bool lane_begin(struct monitor *m, uint32_t i, const struct lane *from)
{
	struct streams s = { m->conduct, ROW_START };
	struct lane *to = &record(m)->lane[i];
	uint32_t chunk = chunk_new(m);

	MUST(i < LANES && !to->life);

	if (chunk == CHUNK_NONE)
		return false;
	cursor_begin(&s, i, from->life, 0);
	record(m)->lanes_high = i < record(m)->lanes_high ? record(m)->lanes_high : i + 1;
	*to = (struct lane){ .state = LANE_OPEN, .first = chunk, .now = chunk, .oldest = chunk,
			     .readers = ~0u, .seam_chunk = CHUNK_NONE, .life = from->life };
	m->start.moved_ms = now_ms();
	return true;
}

/* The last cell of a full chunk names the next: the leader's, and ours. */
static bool chunk_turn(struct monitor *m, struct cursor *c, struct lane *to)
{
	struct section *leader = streams_part(m, 0);
	const struct event *was = (const void *)cell_at(leader, place_chunk(c->place), c->at);
	struct event *turn = (void *)cell_at(record(m), to->now, to->head);
	uint32_t next = (uint32_t)was->arg[0], ours = chunk_new(m);

	if (was->kind != EVENT_TURN || next >= m->conduct->chunks || ours == CHUNK_NONE)
		return false;
	*turn = (struct event){ .kind = EVENT_TURN, .arg = { ours } };
	to->now = ours;
	to->head++;
	c->place = cursor_place(c->at + 1, next);
	/* The leader may use the cells again. */
	PUBLISH(cursor_at, &c->at, c->at + 1);
	return true;
}

/* Copies what the lane has up to a cell; false: there is no room, or it makes no sense. */
static bool lane_copy(struct monitor *m, uint32_t i, uint64_t end)
{
	struct cursor *c = &record(m)->cursor[i];
	struct lane *to = &record(m)->lane[i];

	if (!c->at)
		c->place = cursor_place(0, streams_part(m, 0)->lane[i].first);
	while (c->at < end) {
		uint64_t in_chunk = CHUNK_CELLS - 1 - c->at % CHUNK_CELLS;
		uint64_t n = end - c->at < in_chunk ? end - c->at : in_chunk;

		if (place_chunk(c->place) >= m->conduct->chunks)
			return false;
		if (!n && !chunk_turn(m, c, to))
			return false;
		if (!n)
			continue;
		MUST(n < CHUNK_CELLS && to->head % CHUNK_CELLS + n < CHUNK_CELLS);
		memcpy(cell_at(record(m), to->now, to->head),
		       cell_at(streams_part(m, 0), place_chunk(c->place), c->at), n * CELL_SIZE);
		to->head += n;
		PUBLISH(cursor_at, &c->at, c->at + n);
	}
	return true;
}

/* Nothing more of this life of the lane is kept: it holds nothing for us. */
static bool lane_leave(struct monitor *m, uint32_t i, uint32_t life)
{
	struct streams s = { m->conduct, ROW_START };

	if (record(m)->cursor[i].life != life)
		cursor_begin(&s, i, life, 0);
	cursor_done(&s, i);
	return true;
}

/* Copies all that the lane has told us, and notes the last seam in that. */
static bool lane_follow(struct monitor *m, uint32_t i, const struct lane *l, bool told)
{
	struct lane *to = &record(m)->lane[i];
	uint64_t before = record(m)->cursor[i].at;
	/* The seam is not behind the head. */
	bool seam = CONSUME(lane_seam_chunk, &l->seam_chunk) != CHUNK_NONE;
	uint64_t cut = CONSUME(lane_seam, &l->seam);
	uint64_t end = told ? CONSUME(lane_head, &l->head) : cut;

	if (!lane_copy(m, i, end))
		return false;
	to->owner = l->owner;
	to->pid = l->pid;
	if (seam && cut <= to->head) {
		to->seam = cut;
		to->seam_chunk = 0;
		m->start.seam = true;
	}
	if (told && to->head != before)
		m->start.moved_ms = now_ms();
	return told || lane_leave(m, i, to->life);
}

/* Looks at one lane of the leader; false: the record is lost. */
static bool lane_look(struct monitor *m, uint32_t i)
{
	const struct lane *l = &streams_part(m, 0)->lane[i];
	uint32_t state = CONSUME(lane_state, &l->state);
	uint32_t life = CONSUME(lane_life, &l->life);
	bool told = CONSUME(lane_readers, &l->readers) & US;
	struct lane *to = &record(m)->lane[i];

	if (!life || state == LANE_FREE || state == LANE_CLAIMED ||
	    record(m)->cursor[i].done == life)
		return true;
	if (to->life != life && !told && !l->seam)
		return lane_leave(m, i, life);	/* begun after its parent's start */
	if (!to->life && !lane_begin(m, i, l))
		return false;
	return to->life == life && lane_follow(m, i, l, told);
}

static void threads_look(struct monitor *m)
{
	const struct section *s = record(m);

	for (uint32_t i = 0; i < section_lanes(s); i++)
		for (uint32_t k = 0; k < i; k++)
			m->start.threads |= s->lane[i].pid && s->lane[i].pid == s->lane[k].pid;
}

/* Back to its last seam; what came behind was copied for nothing. */
static void lanes_cut(struct monitor *m)
{
	for (uint32_t i = 0; i < section_lanes(record(m)); i++) {
		struct lane *to = &record(m)->lane[i];

		if (to->life && to->seam_chunk != CHUNK_NONE)
			to->head = to->seam;
	}
}

static void kept(struct monitor *m)
{
	MUST(m->start.state == START_READS && !m->leader);
	m->start.state = START_KEPT;
	leave(m);
	lanes_cut(m);
	threads_look(m);
	/* The record is whole. */
	BOTH_BY(conduct_bits, fetch_or, &m->conduct->ended, US);
	streams_changed(m);
	say_log("start", "%s: the start is kept: %u lanes, %u KiB", m->session.name,
		record(m)->lanes_high, m->start.chunks * (CHUNK_SIZE >> 10));
}

static const char too_long[] = "it is longer than 16 MiB, or than the ring";

static bool lanes_look(struct monitor *m, const struct section *from)
{
	for (uint32_t i = 0; i < section_lanes(from); i++)
		if (!lane_look(m, i))
			return false;
	return true;
}

/* Others may be told of more connections: these do not count. */
static bool in_start(struct monitor *m, const struct slot *slot)
{
	uint32_t lane = slot->lane - 1;

	return lane < LANES && streams_part(m, 0)->lane[lane].readers & US;
}

/* What a server learns from its first connection belongs to the start, and its end. */
static bool had_client(struct monitor *m)
{
	const struct version *v = leading(m);
	bool any = false;
	int64_t open = 0;

	for (uint32_t i = 0; i < version_slots(v); i++) {
		any |= v->area->slot[i].conns_told != 0;
		open += in_start(m, &v->area->slot[i]) ? v->area->slot[i].conns_open : 0;
	}
	return any && open <= 0;
}

static bool is_quiet(struct monitor *m)
{
	return now_ms() > m->start.moved_ms + (had_client(m) ? QUIET_MS : ALONE_MS);
}

void start_record_look(struct monitor *m)
{
	const struct section *from;
	bool whole, dropped;

	if (m->start.state != START_READS)
		return;
	from = streams_part(m, 0);
	whole = m->leader || lanes_look(m, from);
	/* What we copied was held for us, or it is not believed. */
	dropped = CONSUME_AGAIN(section_dropped, &from->dropped) & US;
	if (m->leader || dropped || !whole)
		lost(m, m->leader ? "another version leads now" :
			dropped ? "the ring was too small for it" : too_long);
	else if (m->start.seam && is_quiet(m))
		kept(m);
	else
		monitor_wake_after(m, LOOK_MS);
}
