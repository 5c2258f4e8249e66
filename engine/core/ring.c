/*
 * Lanes: the writer's side and the reader's.
 *
 * The writer fills cells behind `head` and publishes them by one store; a reader
 * looks at nothing beyond the head it has seen.  Neither makes a system call.
 * What a reader finds was written by another process, which may be broken: sizes
 * and chunk numbers are read once and checked, and one that makes no sense ends
 * the reading, not the reader.
 */
#include "engine/core/ring.h"

struct section *streams_section(const struct streams *s, uint32_t version)
{
	uint64_t base = (uint64_t)s->conduct;

	return (struct section *)(base + section_offset(s->conduct->chunks, version));
}

static uint8_t *chunk_at(const struct section *sec, uint32_t chunk)
{
	return (uint8_t *)sec + sizeof(*sec) + (uint64_t)chunk * CHUNK_SIZE;
}

/* --- chunks ------------------------------------------------------------------ */

static uint32_t followers(const struct streams *s, const struct section *own)
{
	/* Acquire: a follower that is added has its cursors ready. */
	uint32_t bits = __atomic_load_n(&s->conduct->following, __ATOMIC_ACQUIRE);

	return bits & ~__atomic_load_n(&own->dropped, __ATOMIC_RELAXED) & ~(1u << s->self);
}

/* The chunk of the lane's chain that a follower reads; 0 before it has begun. */
static uint64_t reader_serial(const struct streams *s, uint32_t version,
			      const struct lane *l, uint32_t index)
{
	const struct cursor *c = &streams_section(s, version)->cursor[index];

	if (__atomic_load_n(&c->done, __ATOMIC_ACQUIRE) == l->life)
		return ~0ull;
	/* Acquire: what the reader took before it moved on has been read. */
	if (__atomic_load_n(&c->life, __ATOMIC_ACQUIRE) != l->life || c->source != s->self)
		return 0;
	return __atomic_load_n(&c->at, __ATOMIC_ACQUIRE) / CHUNK_CELLS;
}

/* Followers that still need the chain's chunk number `serial`, as bits. */
static uint32_t held_by(const struct streams *s, const struct section *own, uint32_t index,
			uint32_t serial)
{
	uint32_t bits = followers(s, own), held = 0;

	for (uint32_t v = 0; bits >> v; v++)
		if (bits >> v & 1 && reader_serial(s, v, &own->lane[index], index) <= serial)
			held |= 1u << v;
	return held;
}

uint32_t writer_held_by(const struct writer *w)
{
	return held_by(w->streams, w->section, w->index, w->lane->oldest_serial);
}

static uint32_t chunk_claim(struct streams *s, struct section *own, uint32_t index)
{
	uint32_t n = s->conduct->chunks, from = own->chunk_hint;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = (from + i) % n, none = 0;

		if (own->chunk_owner[c])
			continue;
		if (__atomic_compare_exchange_n(&own->chunk_owner[c], &none, index + 1, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_store_n(&own->chunk_hint, c + 1, __ATOMIC_RELAXED);
			return c;
		}
	}
	return CHUNK_NONE;
}

/* A chunk for the lane: its own oldest if nobody needs it, else a free one. */
static uint32_t chunk_take(struct writer *w)
{
	struct lane *l = w->lane;
	uint32_t c = l->oldest;

	if (c != l->now && !writer_held_by(w)) {
		l->oldest = w->section->chunk_next[c];
		l->oldest_serial++;
		return c;
	}
	return chunk_claim(w->streams, w->section, w->index);
}

static void chain_free(struct section *own, struct lane *l)
{
	uint32_t c = l->oldest;

	while (c != CHUNK_NONE && c != l->now) {
		uint32_t next = own->chunk_next[c];

		__atomic_store_n(&own->chunk_owner[c], 0, __ATOMIC_RELEASE);
		c = next;
	}
	if (c != CHUNK_NONE)
		__atomic_store_n(&own->chunk_owner[c], 0, __ATOMIC_RELEASE);
}

/* --- lanes --------------------------------------------------------------------- */

/* A closed lane that all followers have read to its end, or a free one. */
static bool lane_claim(struct streams *s, struct section *own, uint32_t index)
{
	struct lane *l = &own->lane[index];
	uint32_t state = __atomic_load_n(&l->state, __ATOMIC_ACQUIRE);

	if (state == LANE_OPEN || (state == LANE_CLOSED && held_by(s, own, index, ~0u)))
		return false;
	return __atomic_compare_exchange_n(&l->state, &state, LANE_OPEN, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static void lane_begin(struct section *own, struct lane *l, uint32_t chunk, bool used)
{
	if (used)
		chain_free(own, l);
	l->first = l->now = l->oldest = chunk;
	l->oldest_serial = 0;
	__atomic_store_n(&l->head, 0, __ATOMIC_RELAXED);
	/* Release: whoever sees the new life sees an empty lane. */
	__atomic_store_n(&l->life, l->life + 1, __ATOMIC_RELEASE);
}

int lane_open(struct streams *s)
{
	struct section *own = streams_section(s, s->self);
	uint32_t high = __atomic_load_n(&own->lanes_high, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < LANES; i++) {
		bool used = own->lane[i].state == LANE_CLOSED;
		uint32_t chunk;

		if (!lane_claim(s, own, i))
			continue;
		chunk = chunk_claim(s, own, i);
		if (chunk == CHUNK_NONE) {
			__atomic_store_n(&own->lane[i].state, used ? LANE_CLOSED : LANE_FREE,
					 __ATOMIC_RELEASE);
			return -1;
		}
		lane_begin(own, &own->lane[i], chunk, used);
		while (high <= i && !__atomic_compare_exchange_n(&own->lanes_high, &high, i + 1,
								 false, __ATOMIC_RELAXED,
								 __ATOMIC_RELAXED))
			;
		return (int)i;
	}
	return -1;
}

void lane_close(struct streams *s, uint32_t index)
{
	/* Release: the last events are published before. */
	__atomic_store_n(&streams_section(s, s->self)->lane[index].state, LANE_CLOSED,
			 __ATOMIC_RELEASE);
}

/* --- the writer ------------------------------------------------------------------ */

void writer_attach(struct writer *w, struct streams *s, uint32_t index)
{
	w->streams = s;
	w->section = streams_section(s, s->self);
	w->index = index;
	w->lane = &w->section->lane[index];
	w->cell = (uint32_t)(w->lane->head % CHUNK_CELLS);
	w->open = NULL;
}

static struct event *cell_at(const struct writer *w, uint32_t chunk, uint32_t cell)
{
	return (struct event *)(chunk_at(w->section, chunk) + cell * CELL_SIZE);
}

/* The lane goes on in another chunk; the turn fills the rest of this one. */
static bool turn(struct writer *w)
{
	struct lane *l = w->lane;
	uint32_t chunk = chunk_take(w);
	struct event *e = cell_at(w, l->now, w->cell);

	if (chunk == CHUNK_NONE)
		return false;
	*e = (struct event){ .kind = EVENT_TURN, .arg = { chunk } };
	w->section->chunk_next[l->now] = chunk;
	l->now = chunk;
	/* Release: the turn is read after the head. */
	__atomic_store_n(&l->head, l->head + CHUNK_CELLS - w->cell, __ATOMIC_RELEASE);
	w->cell = 0;
	return true;
}

struct event *writer_begin(struct writer *w, uint8_t kind, uint16_t call)
{
	/* The last cell of a chunk is kept for the turn. */
	if (w->cell >= CHUNK_CELLS - 1 && !turn(w))
		return NULL;
	w->open = cell_at(w, w->lane->now, w->cell);
	w->open->kind = kind;
	w->open->call = call;
	w->open->flags = 0;
	w->at = (uint8_t *)(w->open + 1);
	return w->open;
}

size_t writer_room(const struct writer *w)
{
	return (size_t)((uint8_t *)cell_at(w, w->lane->now, CHUNK_CELLS - 1) - w->at);
}

void writer_commit(struct writer *w)
{
	uint32_t size = (uint32_t)(w->at - (uint8_t *)(w->open + 1)), cells = event_cells(size);

	w->open->size = size;
	w->open = NULL;
	w->cell += cells;
	/* Release: a reader that sees the head sees the event. */
	__atomic_store_n(&w->lane->head, w->lane->head + cells, __ATOMIC_RELEASE);
}

/* --- the reader -------------------------------------------------------------------- */

void cursor_begin(struct streams *s, uint32_t index, uint32_t life, uint32_t source)
{
	struct cursor *c = &streams_section(s, s->self)->cursor[index];

	c->chunk = streams_section(s, source)->lane[index].first;
	c->source = source;
	c->at = 0;
	/* Release: a writer that sees the life sees the place. */
	__atomic_store_n(&c->life, life, __ATOMIC_RELEASE);
}

void cursor_done(struct streams *s, uint32_t index)
{
	struct cursor *c = &streams_section(s, s->self)->cursor[index];

	/* Release: all has been read before the lane is used again. */
	__atomic_store_n(&c->done, c->life, __ATOMIC_RELEASE);
}

void reader_attach(struct reader *r, struct streams *s, uint32_t index)
{
	r->streams = s;
	r->index = index;
	r->cursor = &streams_section(s, s->self)->cursor[index];
	r->from = streams_section(s, r->cursor->source);
	r->pos = r->head = r->cursor->at;
	r->chunk = r->cursor->chunk;
	r->piece = NULL;
	r->left = 0;
	r->broken = false;
}

void reader_switch(struct reader *r, uint32_t version)
{
	struct cursor *c = r->cursor;

	c->source = version;
	r->from = streams_section(r->streams, version);
	r->pos = r->head = 0;
	r->chunk = r->from->lane[r->index].first;
	c->chunk = r->chunk;
	__atomic_store_n(&c->at, 0, __ATOMIC_RELEASE);
}

static bool published(struct reader *r, uint64_t pos)
{
	if (pos < r->head)
		return true;
	/* Acquire: pairs with the writer's release of the head. */
	r->head = __atomic_load_n(&r->from->lane[r->index].head, __ATOMIC_ACQUIRE);
	return pos < r->head;
}

static const struct event *event_at(const struct reader *r, uint32_t chunk, uint64_t pos)
{
	return (const struct event *)(chunk_at(r->from, chunk) +
				      pos % CHUNK_CELLS * CELL_SIZE);
}

/* Follows turns; the event at (*chunk, *pos), or NULL. */
static const struct event *event_find(struct reader *r, uint32_t *chunk, uint64_t *pos)
{
	while (published(r, *pos)) {
		const struct event *e;

		if (*chunk >= r->streams->conduct->chunks) {
			r->broken = true;
			return NULL;
		}
		e = event_at(r, *chunk, *pos);
		if (e->kind != EVENT_TURN)
			return e;
		*chunk = (uint32_t)e->arg[0];
		*pos += CHUNK_CELLS - *pos % CHUNK_CELLS;
	}
	return NULL;
}

/* The event's payload as far as it can be true. */
static uint32_t size_checked(struct reader *r, const struct event *e, uint64_t pos)
{
	uint32_t size = e->size, room = (uint32_t)(CHUNK_CELLS - pos % CHUNK_CELLS) * CELL_SIZE;

	if (size <= room - CELL_SIZE)
		return size;
	r->broken = true;
	return 0;
}

const struct event *reader_peek(struct reader *r)
{
	const struct event *e;

	/* What is left of the one before. */
	while ((e = event_find(r, &r->chunk, &r->pos)) && e->kind == EVENT_MORE)
		r->pos += event_cells(size_checked(r, e, r->pos));
	if (!e)
		return NULL;
	r->piece = (const uint8_t *)(e + 1);
	r->left = size_checked(r, e, r->pos);
	return r->broken ? NULL : e;
}

/* The looked-at event has an EVENT_MORE: its payload goes on there. */
static bool payload_more(struct reader *r)
{
	uint32_t chunk = r->chunk;
	const struct event *now = event_at(r, chunk, r->pos), *e;
	uint64_t pos = r->pos + event_cells(size_checked(r, now, r->pos));

	e = event_find(r, &chunk, &pos);
	if (!e || e->kind != EVENT_MORE)
		return false;
	r->chunk = chunk;
	r->pos = pos;
	r->piece = (const uint8_t *)(e + 1);
	r->left = size_checked(r, e, pos);
	return !r->broken;
}

size_t reader_piece(struct reader *r, size_t want, const uint8_t **piece)
{
	size_t n;

	if (!r->left && !payload_more(r))
		return 0;
	n = want < r->left ? want : r->left;
	*piece = r->piece;
	r->piece += n;
	r->left -= (uint32_t)n;
	return n;
}

uint8_t reader_take(struct reader *r)
{
	const struct event *e = event_at(r, r->chunk, r->pos);
	uint8_t flags = e->flags;

	r->pos += event_cells(size_checked(r, e, r->pos));
	r->left = 0;
	r->cursor->chunk = r->chunk;
	/* Release: the writer may use the cells again after it sees this. */
	__atomic_store_n(&r->cursor->at, r->pos, __ATOMIC_RELEASE);
	return flags;
}

bool reader_at_end(const struct reader *r)
{
	return r->pos >= __atomic_load_n(&r->from->lane[r->index].head, __ATOMIC_ACQUIRE);
}
