/*
 * Writing and reading lanes: engine/abi/ring.h has the layout and the rules.
 * A writer and a reader are a thread's own, in private memory; what they share
 * stands in the sections.
 */
#ifndef MVE_CORE_RING_H
#define MVE_CORE_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/abi/ring.h"
#include "engine/core/inline.h"
#include "engine/core/pairs.h"

/* The streams as one process has mapped them. */
struct streams {
	const struct conduct *conduct;
	uint32_t self;		/* our version */
};

struct writer {
	struct streams *streams;
	struct section *section;
	struct lane *lane;
	struct event *cell;	/* the next one, in the chunk that is written, */
	struct event *last;	/* and the chunk's last one, which is for the turn; */
	struct event *stop;	/* the same, or NULL while it owes */
	const struct event *ask;	/* behind this one more of that chunk are asked for */
	uint64_t head;		/* as published: nobody else writes it */
	uint32_t index;
	struct event *open;
	uint8_t *at;		/* where its payload goes on */
	uint32_t number;	/* of the chunk: `now` of the lane may be anything */
	bool owes;		/* a spare chunk, see writer_settle */
	bool fed;		/* by one thread, as all lanes of a recording (holds.c) */
};

struct reader {
	struct streams *streams;
	struct cursor *cursor;
	const struct section *from;
	uint32_t index;
	uint32_t chunk;
	uint64_t pos;		/* of the event that is looked at */
	uint64_t head;		/* as last seen */
	const uint8_t *piece;	/* payload not yet read */
	uint32_t left;
	bool ahead;		/* what is looked at is not the cursor's next */
	bool broken;		/* the stream makes no sense */
	bool complete;		/* behind its payload another event was seen: it has no more */
	bool waited_out;	/* the host's: looked once more after the stream's end */
	uint8_t given;		/* the host's: up to this chunk of the lane it has said so */
	uint32_t here;		/* 1 + the lane's chunk that was found in memory last */
};

static inline struct section *streams_section(const struct streams *s, uint32_t version)
{
	uint64_t base = (uint64_t)s->conduct;

	if (version >= s->conduct->sections)	/* as a cursor may say */
		version = s->self;
	return (struct section *)(base + section_offset(s->conduct->chunks, version));
}

/* Lanes that were ever opened are below this; the word may be anything. */
static inline uint32_t section_lanes(const struct section *s)
{
	uint32_t high = __atomic_load_n(&s->lanes_high, __ATOMIC_RELAXED);

	return high < LANES ? high : LANES;
}

/* Versions that a leader's section must not overtake, as bits. */
static inline uint32_t streams_followers(const struct streams *s, const struct section *own);

/* What of the lane nobody needs any more becomes free for any lane: so many chunks. */
uint32_t lane_give_back(struct streams *s, uint32_t index);
/*
 * Opens a lane nobody uses, for these followers to read; its number, or -1 when there is none
 * or no chunk for it.
 */
int lane_open(struct streams *s, uint32_t readers);
/*
 * Opens this lane in this life, for who tells what another has told; false: it is in use, its
 * last life is not read to its end, or there is no chunk for it.
 */
bool lane_open_at(struct streams *s, uint32_t index, uint32_t life);
/* The same, from this place on: what was told before nobody will read. */
static inline bool lane_open_from(struct streams *s, uint32_t index, uint32_t life, uint64_t at)
{
	struct lane *l = &streams_section(s, s->self)->lane[index];

	if (!lane_open_at(s, index, life))
		return false;
	PUBLISH(lane_oldest, &l->oldest, (l->base + at / CHUNK_CELLS) << 32 | l->now);
	/* Who reads there begins there. */
	PUBLISH(lane_head, &l->head, at);
	return true;
}
/* The opened lane is not needed: it is empty, and no follower was told of it. */
void lane_cancel(struct streams *s, uint32_t index);
/*
 * Begins an open lane of a version that followed until now, in the life that it has:
 * the monitor has emptied it and may have told readers of it.  false: no room.
 * *owes: it begins with a spare chunk, which its writer owes.
 */
bool lane_reopen(struct streams *s, uint32_t index, bool *owes);
/* No event will come after those that are there. */
void lane_close(struct streams *s, uint32_t index);

/* Binds a writer to an open lane, wherever an earlier one has left it. */
void writer_attach(struct writer *w, struct streams *s, uint32_t index);
/* Room for an event's header; NULL when the ring is full. */
static INLINE struct event *writer_begin(struct writer *w, uint8_t kind, uint16_t call);
/* Bytes of payload that the open event can still take. */
static inline size_t writer_room(const struct writer *w);
/* Publishes the open event. */
static INLINE void writer_commit(struct writer *w);
/* The chunk is full: the lane goes on in another; false when there is none. */
bool writer_turn(struct writer *w);
/* Gives a chunk for the spare one that it owes; false: there is none yet. */
bool writer_settle(struct writer *w);
/* Whether it owes one, as lane_reopen() has said. */
static inline void writer_owe(struct writer *w, bool owes)
{
	w->owes = owes;
	w->stop = owes ? NULL : w->last;
}

/* Followers that must read on, or be dropped, before a full ring has room, as bits. */
uint32_t writer_held_by(const struct writer *w);
/* The same, before a lane can be opened. */
uint32_t lanes_held_by(const struct streams *s);

/* Readies our cursor for a lane's new life, read from the start. */
void cursor_begin(struct streams *s, uint32_t index, uint32_t life, uint32_t source);
/* Goes on in the same life of the lane in another stream, at the seam where we were added. */
void cursor_join(struct streams *s, uint32_t index, uint32_t source);
/* The lane is read to its end: it may be used again. */
void cursor_done(struct streams *s, uint32_t index);
/* Binds a reader to a lane, wherever the cursor says that an earlier one was. */
void reader_attach(struct reader *r, struct streams *s, uint32_t index);
/*
 * The same where another thread reads the lane, to look ahead; false: it moves right now, and
 * what was read of its place does not belong together.
 */
static inline bool reader_attach_other(struct reader *r, struct streams *s, uint32_t index)
{
	uint64_t place;

	reader_attach(r, s, index);
	/* What is read behind it is no older. */
	r->pos = r->head = CONSUME(cursor_at, &r->cursor->at);
	place = __atomic_load_n(&r->cursor->place, __ATOMIC_RELAXED);
	r->chunk = place_chunk(place);
	r->ahead = true;
	return place == cursor_place(r->pos, r->chunk);
}
/* The next event, or NULL when there is none (yet); the same until it is taken. */
const struct event *reader_peek(struct reader *r);
/* As reader_peek, but nothing is given back: for the reader of another's lane. */
const struct event *reader_look(struct reader *r);
/* The event behind the looked-at one: for a copy of a reader; nothing is taken. */
const struct event *reader_next(struct reader *r);
/*
 * The next piece of the looked-at event's payload, at most `want` bytes; 0: none
 * left in what is published (EVENT_MORE may still come), or the stream is broken.
 */
size_t reader_piece(struct reader *r, size_t want, const uint8_t **piece);
/*
 * Gives back what was read of a payload whose rest has not come: all lanes may be
 * waiting for that room, so whoever waits for payload must do it.  An event of more
 * than a chunk cannot be looked at again; its header may be overwritten.
 */
void reader_release(struct reader *r);
/* Flags of the piece that was read last: what is told at an event's end stands in its last. */
uint8_t reader_flags(const struct reader *r);
/* Goes behind the looked-at event; its flags, as they were at its end. */
uint8_t reader_take(struct reader *r);
/* All that the lane will ever hold has been taken. */
bool reader_at_end(const struct reader *r);
/* From the start of the same lane in the stream that goes on after this one: open there. */
void reader_switch(struct reader *r, uint32_t version);

/* --- what is done for each event: here, so that a leader's call makes none ------- */

static inline uint32_t streams_followers(const struct streams *s, const struct section *own)
{
	/* A follower that is added has its cursors ready. */
	uint32_t bits = CONSUME(conduct_bits, &s->conduct->following);

	/* What it has read by then has been read. */
	return bits & ~CONSUME(section_dropped, &own->dropped) & ~(1u << s->self);
}

#define CELLS_AHEAD	32	/* how long before its use the writer asks for a cell, */
#define FETCHED		8	/* and for how many at once */
_Static_assert(CHUNK_CELLS % FETCHED == 0 && CELLS_AHEAD + FETCHED <= CHUNK_CELLS,
	       "what is asked for at once lies in one chunk");

static INLINE void cells_ask(const struct event *e)
{
	__asm__ volatile("prefetchw %0\n\tprefetchw %1\n\tprefetchw %2\n\tprefetchw %3\n\t"
			 "prefetchw %4\n\tprefetchw %5\n\tprefetchw %6\n\tprefetchw %7"
			 : : "m"(e[0]), "m"(e[1]), "m"(e[2]), "m"(e[3]), "m"(e[4]), "m"(e[5]),
			     "m"(e[6]), "m"(e[7]));
}

/*
 * A follower has read what the next cells hold, so they are not ours to write: asked for
 * early, they are there when their time comes.  Behind the chunk's end they are another lane's:
 * the writer is never behind `ask` then.
 */
static INLINE void cells_fetch(struct writer *w, const struct event *next)
{
	const struct event *ask;

	if (__builtin_expect((uint64_t)next <= (uint64_t)w->ask, 1))
		return;
	ask = w->ask;
	do {
		cells_ask(ask + CELLS_AHEAD);
		ask += FETCHED;
		if (ask + CELLS_AHEAD > w->last)
			ask = (const struct event *)UINT64_MAX;
	} while (__builtin_expect((uint64_t)next > (uint64_t)ask, 0));
	w->ask = ask;
}

/* Where the open event begins, in the chunk. */
static INLINE uint32_t writer_at(const struct writer *w)
{
	return (uint32_t)(w->head % CHUNK_CELLS);
}

/* Its chunk is another, or its head. */
static inline void writer_enter(struct writer *w, struct event *chunk)
{
	w->cell = chunk + writer_at(w);
	w->last = chunk + CHUNK_CELLS - 1;
	w->ask = chunk + writer_at(w) / FETCHED * FETCHED - CELLS_AHEAD;
	writer_owe(w, w->owes);
}

/* There is a cell in its chunk: the last one is kept for the turn. */
static INLINE bool writer_has_cell(const struct writer *w)
{
	return __builtin_expect(w->cell != w->last, 1);
}

/* The same, and nothing is to be settled before. */
static INLINE bool writer_is_free(const struct writer *w)
{
	return __builtin_expect(w->cell < w->stop, 1);
}

static INLINE struct event *writer_begin(struct writer *w, uint8_t kind, uint16_t call)
{
	if (!writer_has_cell(w) && !writer_turn(w))
		return NULL;
	w->open = w->cell;
	w->open->head = EVENT_HEAD(kind, call, 0);
	w->at = (uint8_t *)(w->open + 1);
	return w->open;
}

/* How early a call's payload begins: behind its values, or behind the header if it has an edge. */
static INLINE unsigned early_behind(unsigned values, uint8_t flags)
{
	return flags & EVENT_AFTER ? 0 : EVENT_ARGS - values;
}

static INLINE uint8_t *payload_from(struct event *e, unsigned early)
{
	return (uint8_t *)(e + 1) - early * sizeof(uint64_t);
}

/* The open event's payload begins behind these values. */
static INLINE void writer_values(struct writer *w, unsigned values)
{
	const unsigned early = early_behind(values, w->open->flags);

	w->open->early = (uint8_t)early;
	w->at = payload_from(w->open, early);
}

/* Where the payload of an event in this chunk ends at the latest. */
static INLINE const uint8_t *writer_end(const struct writer *w)
{
	return (const uint8_t *)w->last;
}

static inline size_t writer_room(const struct writer *w)
{
	return (size_t)(writer_end(w) - w->at);
}

/* What is told ends before this cell. */
static INLINE void writer_move(struct writer *w, struct event *e, struct event *next)
{
	w->cell = next;
	w->head += (uint64_t)(next - e);
	/* A reader that sees the head sees the cells. */
	PUBLISH(lane_head, &w->lane->head, w->head);
}

static INLINE void writer_told(struct writer *w, struct event *e, struct event *next)
{
	writer_move(w, e, next);
	cells_fetch(w, next);
}

/* Publishes the event of this head but its extent: its payload begins so early and ends there. */
static INLINE void writer_publish(struct writer *w, struct event *e, uint64_t head,
				  unsigned early, const uint8_t *end)
{
	const uint64_t bytes = (uint64_t)(end - (const uint8_t *)e);

	e->head = head + bytes + (early << 16) + early * sizeof(uint64_t) - CELL_SIZE;
	/* As extent_cells() has it. */
	writer_told(w, e, e + (bytes + CELL_SIZE - 1) / CELL_SIZE);
}

static INLINE void writer_commit(struct writer *w)
{
	struct event *e = w->open;

	writer_publish(w, e, e->head & ~(uint64_t)UINT32_MAX, e->early, w->at);
}

#endif
