/*
 * Lanes: the writer's side and the reader's.
 *
 * The writer fills cells behind `head` and publishes them by one store; a reader
 * looks at nothing beyond the head it has seen.  Neither makes a system call.
 * What a reader finds was written by another process, which may be broken: sizes
 * and chunk numbers are read once and checked, and one that makes no sense ends
 * the reading, not the reader.  So may be what a writer finds in its own section: the
 * worker that gave up root writes there, too.  Where a writer writes is always one of
 * the section's chunks, whatever stands there, and no search is without an end.
 */
#include "engine/core/away.h"
#include "engine/core/holds.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"

_Static_assert(VERSIONS <= 32, "versions are bits of a word");
_Static_assert(CHUNK_SIZE % CELL_SIZE == 0 && CHUNK_CELLS > 2, "a turn, and room before it");
_Static_assert(LANES + 1 < CHUNK_LEAVES && CHUNKS_MAX < CHUNK_NONE, "none is named so");

static uint8_t *chunk_at(const struct section *sec, uint32_t chunk)
{
	return (uint8_t *)sec + chunk_offset(chunk);
}

/* --- chunks ------------------------------------------------------------------ */

static bool chunk_sane(const struct streams *s, uint32_t chunk)
{
	return chunk < s->conduct->chunks;
}

/*
 * A lane's oldest chunk and its serial, in one word: the lane's own thread and any
 * other that needs a chunk may take it, and only one gets it.
 */
static uint64_t oldest_word(uint32_t serial, uint32_t chunk)
{
	return (uint64_t)serial << 32 | chunk;
}

/* False when the lane has no chunk but the one that it writes, or none yet. */
static bool oldest_look(const struct streams *s, const struct lane *l, uint64_t *old)
{
	/* `now` and `base` are as new. */
	*old = CONSUME(lane_oldest, &l->oldest);
	/* What is not `now` is full, and has a next. */
	return (uint32_t)*old != CONSUME(lane_now, &l->now) &&
	       chunk_sane(s, (uint32_t)*old) && __atomic_load_n(&l->life, __ATOMIC_RELAXED);
}

/* Takes the chunk that was seen out of the lane, unless another thread has; true: we have it. */
static bool oldest_pop(struct section *own, struct lane *l, uint64_t old)
{
	uint32_t next = __atomic_load_n(&own->chunk_next[(uint32_t)old], __ATOMIC_RELAXED);
	uint64_t to = oldest_word((uint32_t)(old >> 32) + 1, next);

	/* `now` and `base` are as new; and who is to write it to a file sees that it is gone. */
	return ANNOUNCE_IF(away, &l->oldest, &old, to) && chunk_ours(own, (uint32_t)old);
}

/* The lane's oldest chunk, if it is full and nobody needs it. */
static uint32_t oldest_take(const struct streams *s, struct section *own, uint32_t index)
{
	struct lane *l = &own->lane[index];
	uint64_t old;

	while (oldest_look(s, l, &old) && !held_by(s, own, index, (uint32_t)(old >> 32)))
		if (oldest_pop(own, l, old))
			return (uint32_t)old;
	return CHUNK_NONE;
}

static uint32_t oldest_held_by(const struct streams *s, const struct section *own,
			       uint32_t index)
{
	uint64_t old;

	return oldest_look(s, &own->lane[index], &old) ?
	       held_by(s, own, index, (uint32_t)(old >> 32)) : 0;
}

uint32_t writer_held_by(const struct writer *w)
{
	uint32_t high = section_lanes(w->section);
	uint32_t held = oldest_held_by(w->streams, w->section, w->index);

	for (uint32_t i = 0; !held && i < high; i++)
		held = oldest_held_by(w->streams, w->section, i);
	return held;
}

static void chunk_free(struct section *own, uint32_t chunk)
{
	/* Nobody looks at it any more. */
	PUBLISH(chunk_owner, &own->chunk_owner[chunk], 0);
	/* The lowest first, so that no more of the ring is touched than is needed. */
	if (chunk < __atomic_load_n(&own->chunk_hint, __ATOMIC_RELAXED))
		__atomic_store_n(&own->chunk_hint, chunk, __ATOMIC_RELAXED);
}

static bool chunk_get(struct section *own, uint32_t chunk, uint32_t from, uint32_t to)
{
	uint32_t *owner = &own->chunk_owner[chunk];

	return __atomic_load_n(owner, __ATOMIC_RELAXED) == from &&
	       CONSUME_IF(chunk_owner, owner, &from, to);
}

/* Any chunk may have become a spare one; most are still at the end. */
static uint32_t chunk_borrow(const struct streams *s, struct section *own, uint32_t index)
{
	for (uint32_t c = s->conduct->chunks; c--;)
		if (chunk_get(own, c, CHUNK_SPARE, index + 1))
			return c;
	return CHUNK_NONE;
}

static uint32_t chunk_claim(const struct streams *s, struct section *own, uint32_t index)
{
	uint32_t n = s->conduct->chunks;
	uint32_t from = __atomic_load_n(&own->chunk_hint, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = (from + i) % n;

		if (chunk_get(own, c, 0, index + 1)) {
			__atomic_store_n(&own->chunk_hint, c + 1, __ATOMIC_RELAXED);
			return c;
		}
	}
	return CHUNK_NONE;
}

/* A free chunk, or one that any lane no longer needs: an idle one keeps none. */
static uint32_t chunk_find(const struct streams *s, struct section *own, uint32_t index)
{
	uint32_t high = section_lanes(own);
	uint32_t c = chunk_claim(s, own, index);

	for (uint32_t i = 0; c == CHUNK_NONE && i < high; i++) {
		c = oldest_take(s, own, i);
		if (c != CHUNK_NONE)
			__atomic_store_n(&own->chunk_owner[c], index + 1, __ATOMIC_RELAXED);
	}
	return c;
}

uint32_t lane_give_back(struct streams *s, uint32_t index)
{
	struct section *own = streams_section(s, s->self);
	uint32_t chunk, n = 0;

	MUST(index < LANES);
	for (; n < s->conduct->chunks && (chunk = oldest_take(s, own, index)) != CHUNK_NONE; n++)
		chunk_free(own, chunk);
	return n;
}

/* A chunk for the lane: its own oldest if nobody needs it, else any. */
static uint32_t chunk_take(struct writer *w)
{
	uint32_t c = oldest_take(w->streams, w->section, w->index);

	if (c == CHUNK_NONE)
		return chunk_find(w->streams, w->section, w->index);
	/* What a slow follower has made it hoard. */
	lane_give_back(w->streams, w->index);
	return c;
}

/* --- lanes --------------------------------------------------------------------- */

/* The lane is closed, and these followers have not read it to its end. */
static uint32_t lane_unread(const struct streams *s, const struct section *own, uint32_t index)
{
	const struct lane *l = &own->lane[index];

	return held_by(s, own, index, __atomic_load_n(&l->base, __ATOMIC_RELAXED) +
		       (uint32_t)(__atomic_load_n(&l->head, __ATOMIC_RELAXED) / CHUNK_CELLS));
}

uint32_t lanes_held_by(const struct streams *s)
{
	const struct section *own = streams_section(s, s->self);
	uint32_t high = section_lanes(own), held = 0;

	for (uint32_t i = 0; !held && i < high; i++)
		held = __atomic_load_n(&own->lane[i].state, __ATOMIC_RELAXED) == LANE_CLOSED ?
		       lane_unread(s, own, i) : oldest_held_by(s, own, i);
	return held;
}

/* Makes a free lane ours, or a closed one that all followers have read to its end. */
static bool lane_claim(const struct streams *s, struct section *own, uint32_t index)
{
	uint32_t *state = &own->lane[index].state;
	uint32_t was = CONSUME(lane_state, state);

	if (was != LANE_FREE && (was != LANE_CLOSED || lane_unread(s, own, index)))
		return false;
	if (!CONSUME_IF(lane_state, state, &was, LANE_CLAIMED))
		return false;
	/* Another thread may have had it for a whole life since it was looked at. */
	if (was == LANE_FREE || !lane_unread(s, own, index))
		return true;
	PUBLISH(lane_state, state, LANE_CLOSED);
	return false;
}

/* All chunks of the life before, but the one that it was writing. */
static uint32_t lane_empty(const struct streams *s, struct section *own, struct lane *l)
{
	uint32_t left = s->conduct->chunks;
	uint64_t old;

	while (oldest_look(s, l, &old) && left--)
		if (oldest_pop(own, l, old))
			chunk_free(own, (uint32_t)old);
	return chunk_sane(s, (uint32_t)old) ? (uint32_t)old : CHUNK_NONE;
}

/* For the next life: the chunk that the lane has been writing, or any. */
static uint32_t lane_chunk(const struct streams *s, struct section *own, uint32_t index)
{
	struct lane *l = &own->lane[index];
	uint32_t chunk = l->life ? lane_empty(s, own, l) : CHUNK_NONE;

	return chunk == CHUNK_NONE ? chunk_find(s, own, index) : chunk;
}

static void lane_begin(struct lane *l, uint32_t chunk, uint32_t life, uint32_t readers)
{
	uint32_t base = l->base + (uint32_t)(l->head / CHUNK_CELLS) + 1;

	MUST(chunk < CHUNKS_MAX);

	l->giving = 0;
	__atomic_store_n(&l->first, chunk, __ATOMIC_RELAXED);
	__atomic_store_n(&l->now, chunk, __ATOMIC_RELAXED);
	__atomic_store_n(&l->base, base, __ATOMIC_RELAXED);
	/* Serials go on, so that none comes twice. */
	PUBLISH(lane_oldest, &l->oldest, oldest_word(base, chunk));
	__atomic_store_n(&l->head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&l->owner, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&l->pid, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&l->readers, readers, __ATOMIC_RELAXED);
	__atomic_store_n(&l->seam, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&l->seam_chunk, CHUNK_NONE, __ATOMIC_RELAXED);
	/* Whoever sees the new life sees an empty lane.  0 is none. */
	PUBLISH(lane_life, &l->life, life ? life : 1);
}

static void lanes_raise(struct section *own, uint32_t to)
{
	uint32_t high = __atomic_load_n(&own->lanes_high, __ATOMIC_RELAXED);

	MUST(to <= LANES);

	while (high < to && !__atomic_compare_exchange_n(&own->lanes_high, &high, to, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void lane_set(struct streams *s, uint32_t index, enum lane_state state)
{
	MUST(index < LANES);
	/* All that was done to the lane before is seen by who sees the state. */
	PUBLISH(lane_state, &streams_section(s, s->self)->lane[index].state, state);
}

bool lane_reopen(struct streams *s, uint32_t index, bool *owes)
{
	struct section *own = streams_section(s, s->self);
	uint32_t chunk = lane_chunk(s, own, index);

	MUST(index < LANES);
	*owes = chunk == CHUNK_NONE;
	if (*owes)
		chunk = chunk_borrow(s, own, index);
	if (chunk == CHUNK_NONE)
		return false;
	own->faulted[index] = own->left[index] = 0;
	lane_begin(&own->lane[index], chunk, own->lane[index].life, ~0u);
	return true;
}

void lane_close(struct streams *s, uint32_t index)
{
	lane_set(s, index, LANE_CLOSED);
}

void lane_cancel(struct streams *s, uint32_t index)
{
	lane_set(s, index, LANE_FREE);
}

/* A lane that is claimed; false: there is no chunk for it. */
static bool lane_give(struct streams *s, uint32_t index, uint32_t life, uint32_t readers)
{
	struct section *own = streams_section(s, s->self);
	uint32_t chunk = lane_chunk(s, own, index);

	if (chunk == CHUNK_NONE) {
		lane_cancel(s, index);
		return false;
	}
	own->faulted[index] = own->left[index] = 0;
	lane_begin(&own->lane[index], chunk, life, readers);
	lanes_raise(own, index + 1);
	lane_set(s, index, LANE_OPEN);
	return true;
}

static int lane_find(struct streams *s, uint32_t readers)
{
	struct section *own = streams_section(s, s->self);

	/* Lanes stay fewer than chunks: one more than they write in can go round. */
	for (uint32_t i = 0; i < LANES && i + 1 < chunks_in_memory(s->conduct); i++)
		if (lane_claim(s, own, i))
			return lane_give(s, i, own->lane[i].life + 1, readers) ? (int)i : -1;
	return -1;
}

bool lane_open_at(struct streams *s, uint32_t index, uint32_t life)
{
	MUST(index < LANES && life);
	return lane_claim(s, streams_section(s, s->self), index) &&
	       lane_give(s, index, life, ~0u);
}

int lane_open(struct streams *s, uint32_t readers)
{
	int lane = lane_find(s, readers);

	if (lane < 0 && images_let_go(s, streams_section(s, s->self), LANES))
		lane = lane_find(s, readers);
	return lane;
}

/* --- the writer ------------------------------------------------------------------ */

void writer_attach(struct writer *w, struct streams *s, uint32_t index)
{
	MUST(index < LANES);
	w->streams = s;
	w->section = streams_section(s, s->self);
	w->index = index;
	w->lane = &w->section->lane[index];
	w->number = chunk_sane(s, w->lane->now) ? w->lane->now : 0;
	w->head = w->lane->head;
	w->owes = w->fed = false;
	writer_enter(w, (struct event *)chunk_at(w->section, w->number));
	w->open = NULL;
}

/* Where there is none it may be an image that is in the way. */
static uint32_t chunk_take_back(struct writer *w)
{
	uint32_t c = chunk_take(w);

	return c == CHUNK_NONE &&
	       images_let_go(w->streams, w->section, w->fed ? LANES : w->index) ? chunk_take(w) : c;
}

bool writer_settle(struct writer *w)
{
	uint32_t c = chunk_take_back(w);

	if (c == CHUNK_NONE)
		return false;
	/* Nobody looks at it any more. */
	PUBLISH(chunk_owner, &w->section->chunk_owner[c], CHUNK_SPARE);
	writer_owe(w, false);
	return true;
}

/* A free chunk, or the one that may be borrowed. */
static uint32_t chunk_need(struct writer *w)
{
	uint32_t chunk = chunk_take_back(w);

	if (chunk == CHUNK_NONE && !w->owes) {
		chunk = chunk_borrow(w->streams, w->section, w->index);
		w->owes = chunk != CHUNK_NONE;
	}
	return chunk;
}

/* The turn fills the rest of the chunk. */
bool writer_turn(struct writer *w)
{
	struct lane *l = w->lane;
	uint32_t chunk = chunk_need(w);

	if (chunk == CHUNK_NONE)
		return false;
	/* Ours, whatever stands in the section: the turn fits, and leads into it. */
	MUST(chunk_sane(w->streams, chunk) && chunk != w->number);
	*w->cell = (struct event){ .kind = EVENT_TURN, .arg = { chunk } };
	__atomic_store_n(&w->section->chunk_next[w->number], chunk, __ATOMIC_RELAXED);
	/* The chunk before is full, and has its next. */
	PUBLISH(lane_now, &l->now, chunk);
	w->head += CHUNK_CELLS - writer_at(w);
	/* The turn is read after the head. */
	PUBLISH(lane_head, &l->head, w->head);
	w->number = chunk;
	writer_enter(w, (struct event *)chunk_at(w->section, w->number));
	cells_fetch(w, w->cell);
	return true;
}

/* --- the reader -------------------------------------------------------------------- */

void cursor_begin(struct streams *s, uint32_t index, uint32_t life, uint32_t source)
{
	struct cursor *c = &streams_section(s, s->self)->cursor[index];

	MUST(index < LANES);
	MUST(source < VERSIONS);
	c->place = CHUNK_NONE;
	__atomic_store_n(&c->at, 0, __ATOMIC_RELAXED);
	/* Another stream's lives have the same numbers. */
	__atomic_store_n(&c->done, 0, __ATOMIC_RELAXED);
	looks_begin(s, index, source);
	PUBLISH(cursor_source, &c->source, source);
	PUBLISH(cursor_life, &c->life, life);
}

void cursor_join(struct streams *s, uint32_t index, uint32_t source)
{
	struct cursor *c = &streams_section(s, s->self)->cursor[index];
	const struct lane *l = &streams_section(s, source)->lane[index];
	uint64_t seam = __atomic_load_n(&l->seam, __ATOMIC_RELAXED);

	MUST(index < LANES && source < VERSIONS);
	c->place = cursor_place(seam, __atomic_load_n(&l->seam_chunk, __ATOMIC_RELAXED));
	__atomic_store_n(&c->at, seam, __ATOMIC_RELAXED);
	__atomic_store_n(&c->done, 0, __ATOMIC_RELAXED);
	looks_begin(s, index, source);
	PUBLISH(cursor_source, &c->source, source);
}

void cursor_done(struct streams *s, uint32_t index)
{
	struct cursor *c = &streams_section(s, s->self)->cursor[index];

	MUST(index < LANES);
	/* All has been read before the lane is used again. */
	PUBLISH(cursor_done, &c->done, c->life);
}

void reader_attach(struct reader *r, struct streams *s, uint32_t index)
{
	MUST(index < LANES);
	r->streams = s;
	r->index = index;
	r->cursor = &streams_section(s, s->self)->cursor[index];
	r->from = streams_section(s, r->cursor->source);
	r->pos = r->head = r->cursor->at;
	r->chunk = place_chunk(r->cursor->place);
	r->piece = NULL;
	r->left = 0;
	r->here = 0;
	r->ahead = r->broken = r->waited_out = false;
}

void reader_switch(struct reader *r, uint32_t version)
{
	const struct lane *l = &streams_section(r->streams, version)->lane[r->index];
	/* The head is this life's. */
	uint32_t life = CONSUME(lane_life, &l->life);

	cursor_begin(r->streams, r->index, life, version);
	reader_attach(r, r->streams, r->index);
}

static void cursor_move(struct reader *r)
{
	__atomic_store_n(&r->cursor->place, cursor_place(r->pos, r->chunk), __ATOMIC_RELAXED);
	/* The writer may use the cells again after it sees this. */
	PUBLISH(cursor_at, &r->cursor->at, r->pos);
}

static const struct event *stream_broken(struct reader *r)
{
	r->broken = true;
	return NULL;
}

static bool published(struct reader *r, uint64_t pos)
{
	if (r->broken)
		return false;
	if (pos < r->head)
		return true;
	r->head = CONSUME(lane_head, &r->from->lane[r->index].head);
	/* What we have not taken fits into the chunks that there are. */
	if (r->head < pos ||
	    r->head / CHUNK_CELLS - r->cursor->at / CHUNK_CELLS >= r->streams->conduct->chunks)
		stream_broken(r);
	return !r->broken && pos < r->head;
}

static const struct event *event_at(const struct reader *r, uint32_t chunk, uint64_t pos)
{
	return (const struct event *)(chunk_at(r->from, chunk) +
				      pos % CHUNK_CELLS * CELL_SIZE);
}

static uint8_t kind_of(const struct event *e)
{
	return __atomic_load_n(&e->kind, __ATOMIC_RELAXED);
}

/* A turn is in the last cell, and only there. */
static bool kind_possible(uint8_t kind, uint64_t pos)
{
	return kind > EVENT_NONE && kind < EVENT_KINDS &&
	       (kind == EVENT_TURN) == (pos % CHUNK_CELLS == CHUNK_CELLS - 1);
}

/* Follows turns; the event at (*chunk, *pos), or NULL. */
static const struct event *event_find(struct reader *r, uint32_t *chunk, uint64_t *pos)
{
	uint32_t chunks = r->streams->conduct->chunks;

	while (published(r, *pos)) {
		const struct event *e;
		uint64_t next;
		uint8_t kind;

		/* A lane may get its first chunk after its readers. */
		if (!*pos)
			*chunk = __atomic_load_n(&r->from->lane[r->index].first, __ATOMIC_RELAXED);
		if (*chunk >= chunks || !chunk_enter(r, *chunk, *pos))
			return stream_broken(r);
		e = event_at(r, *chunk, *pos);
		kind = kind_of(e);
		if (!kind_possible(kind, *pos))
			return stream_broken(r);
		if (kind != EVENT_TURN)
			return e;
		next = __atomic_load_n(&e->arg[0], __ATOMIC_RELAXED);
		if (next >= chunks)
			return stream_broken(r);
		*chunk = (uint32_t)next;
		*pos += 1;
	}
	return NULL;
}

static const struct event *event_here(const struct reader *r)
{
	return event_at(r, r->chunk, r->pos);
}

/* The event's extent as far as it can be true: before the turn and the head. */
static uint32_t extent_here(struct reader *r)
{
	const uint32_t extent = extent_of(event_here(r)), cells = extent_cells(extent);

	if (r->pos % CHUNK_CELLS + cells < CHUNK_CELLS && r->pos + cells <= r->head)
		return extent;
	stream_broken(r);
	return 0;
}

static uint64_t behind(struct reader *r)
{
	return r->pos + extent_cells(extent_here(r));
}

static void piece_begin(struct reader *r)
{
	const uint32_t extent = extent_here(r);

	MUST(extent_early(extent) < CELL_SIZE);
	r->piece = extent_payload(event_here(r), extent);
	r->left = extent_size(extent);
}

/* Looks at the event at or behind the reader's place that begins a payload. */
static const struct event *look(struct reader *r)
{
	const struct event *e;

	/* What is left of the one before. */
	while ((e = event_find(r, &r->chunk, &r->pos)) && kind_of(e) == EVENT_MORE)
		r->pos = behind(r);
	if (!e || r->broken)
		return NULL;
	piece_begin(r);
	return r->broken ? NULL : e;
}

const struct event *reader_peek(struct reader *r)
{
	const struct event *e;

	r->chunk = place_chunk(r->cursor->place);
	r->pos = r->cursor->at;
	r->ahead = false;
	e = look(r);
	/* Given back at once: the writer may wait for room for the very next event. */
	if (!r->broken && r->pos != r->cursor->at)
		cursor_move(r);
	return e;
}

const struct event *reader_look(struct reader *r)
{
	r->ahead = true;
	return look(r);
}

const struct event *reader_next(struct reader *r)
{
	r->pos = behind(r);
	r->ahead = true;
	return r->broken ? NULL : look(r);
}

/* The looked-at event has an EVENT_MORE: its payload goes on there. */
static bool payload_more(struct reader *r)
{
	uint32_t chunk = r->chunk;
	uint64_t pos = behind(r);
	const struct event *e = event_find(r, &chunk, &pos);

	r->complete = e && kind_of(e) != EVENT_MORE;
	if (!e || r->complete)
		return false;
	r->chunk = chunk;
	r->pos = pos;
	piece_begin(r);
	return !r->broken;
}

size_t reader_piece(struct reader *r, size_t want, const uint8_t **piece)
{
	size_t n;

	/* An EVENT_MORE in a chunk's last free cell is empty. */
	while (!r->left)
		if (!payload_more(r))
			return 0;
	n = want < r->left ? want : r->left;
	*piece = r->piece;
	r->piece += n;
	r->left -= (uint32_t)n;
	return n;
}

void reader_release(struct reader *r)
{
	if (!r->ahead && !r->broken)
		cursor_move(r);
}

uint8_t reader_flags(const struct reader *r)
{
	return event_here(r)->flags;
}

uint8_t reader_take(struct reader *r)
{
	const uint8_t flags = reader_flags(r);

	/* A copy that looks ahead, or is of another lane, takes nothing. */
	MUST(!r->ahead);
	r->pos = behind(r);
	r->left = 0;
	cursor_move(r);
	return flags;
}

bool reader_at_end(const struct reader *r)
{
	const struct lane *l = &r->from->lane[r->index];
	/* All that was written is there. */
	uint32_t ended = CONSUME(conduct_bits, &r->streams->conduct->ended);

	/* The head is the last one. */
	if (!(ended >> r->cursor->source & 1) &&
	    CONSUME(lane_state, &l->state) != LANE_CLOSED)
		return false;
	return r->pos >= CONSUME(lane_head, &l->head);
}
