/*
 * Streams for the tests of the ring, mapped as sessions map them: a view for each
 * version, with its own section writable and the others read-only.  Here sections
 * that nobody uses cannot be touched at all, and stand on both sides of the
 * leader's: a reader that believes a broken stream dies of it.  The monitor's view,
 * which may write everything, is where streams get broken.
 *
 * Payloads are made of their event's number, so that any event can be checked.
 */
#ifndef MVE_TESTS_RING_H
#define MVE_TESTS_RING_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/core/ring.h"

#define CHUNKS	4
#define LEADER	3
#define FAST	1	/* follower */
#define SLOW	6	/* follower; leads after LEADER */
#define BIT(version) (1u << (version))
#define EVENTS	(CHUNK_CELLS - 1)	/* of a cell each, in a chunk */
#define ROOM	((CHUNK_CELLS - 2) * CELL_SIZE)	/* for payload in a fresh chunk */

static struct conduct *conduct;	/* the monitor's view */
static struct streams view[VERSIONS];
static struct section *lead, *after;	/* the leader's section, and the next's */
static uint64_t told;		/* events written, of all lanes */

/* --- the streams ---------------------------------------------------------------- */

static inline void *map(int fd)
{
	void *at = mmap(NULL, streams_size(CHUNKS), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	cr_assert_neq(at, MAP_FAILED);
	return at;
}

static inline void view_make(int fd, uint32_t self)
{
	char *at = map(fd);

	view[self] = (struct streams){ (struct conduct *)at, self };
	cr_assert_eq(mprotect(at, CONDUCT_SIZE, PROT_READ), 0);
	for (uint32_t v = 0; v < VERSIONS; v++) {
		int used = v == LEADER || v == FAST || v == SLOW;

		if (v == self)
			continue;
		cr_assert_eq(mprotect(at + section_offset(CHUNKS, v), section_size(CHUNKS),
				      used ? PROT_READ : PROT_NONE), 0);
	}
}

static inline void set_up(void)
{
	int fd = memfd_create("streams", 0);

	cr_assert_eq(ftruncate(fd, streams_size(CHUNKS)), 0);
	conduct = map(fd);
	*conduct = (struct conduct){ .magic = RING_MAGIC, .version = RING_VERSION,
				     .chunks = CHUNKS, .sections = VERSIONS, .leader = LEADER,
				     .following = BIT(FAST) | BIT(SLOW) };
	lead = streams_section(&(struct streams){ conduct, LEADER }, LEADER);
	after = streams_section(&(struct streams){ conduct, SLOW }, SLOW);
	view_make(fd, LEADER);
	view_make(fd, FAST);
	view_make(fd, SLOW);
	close(fd);
	told = 0;
}

static inline struct event *cell(struct section *s, uint32_t chunk, uint32_t n)
{
	return (struct event *)((char *)(s + 1) + (uint64_t)chunk * CHUNK_SIZE + n * CELL_SIZE);
}

static inline unsigned chunks_owned(void)
{
	unsigned n = 0;

	for (int c = 0; c < CHUNKS; c++)
		n += lead->chunk_owner[c] != 0;
	return n;
}

/* --- writing ---------------------------------------------------------------------- */

static inline uint8_t byte(uint64_t seq, size_t i)
{
	return (uint8_t)(seq * 167 + i * 13 + (i >> 8));
}

/* An event of any size; false when the ring is full. */
static inline bool tell(struct writer *w, size_t size)
{
	struct event *e = writer_begin(w, EVENT_CALL, 7);

	if (!e)
		return false;
	e->seq = told;
	e->result = (int64_t)size;
	for (size_t i = 0; i < size; i++) {
		if (!writer_room(w)) {
			writer_commit(w);
			if (!writer_begin(w, EVENT_MORE, 7))
				return false;
		}
		*w->at++ = byte(told, i);
	}
	writer_commit(w);
	told++;
	return true;
}

static inline void tell_many(struct writer *w, int n)
{
	while (n--)
		cr_assert(tell(w, 0));
}

static inline struct writer open_lane(int expected)
{
	struct writer w;

	cr_assert_eq(lane_open(&view[LEADER], ~0u), expected);
	writer_attach(&w, &view[LEADER], (uint32_t)expected);
	return w;
}

/* --- reading ------------------------------------------------------------------------ */

static inline struct reader follow(uint32_t version, uint32_t lane)
{
	struct reader r;

	cursor_begin(&view[version], lane, lead->lane[lane].life, LEADER);
	reader_attach(&r, &view[version], lane);
	return r;
}

/* The payload is the event's, up to `size` bytes, in pieces of `step` at most. */
static inline void same_payload(struct reader *r, uint64_t seq, size_t size, size_t step)
{
	for (size_t i = 0, n; i < size; i += n) {
		const uint8_t *piece;

		n = reader_piece(r, step < size - i ? step : size - i, &piece);
		cr_assert_gt(n, 0, "event %lu ends at %zu of %zu", seq, i, size);
		for (size_t k = 0; k < n; k++)
			cr_assert_eq(piece[k], byte(seq, i + k), "event %lu, byte %zu", seq, i + k);
	}
}

/* The next event is number `seq`, with the payload that it must have. */
static inline void take(struct reader *r, uint64_t seq)
{
	const struct event *e = reader_peek(r);
	const uint8_t *piece;

	cr_assert_not_null(e, "no event %lu", seq);
	cr_assert_eq(e->kind, EVENT_CALL);
	cr_assert_eq(e->seq, seq, "event %lu instead of %lu", e->seq, seq);
	same_payload(r, seq, (size_t)e->result, 1000);
	cr_assert_eq(reader_piece(r, 1, &piece), 0, "event %lu has more", seq);
	reader_take(r);
}

static inline void take_from_to(struct reader *r, uint64_t from, uint64_t to)
{
	while (from < to)
		take(r, from++);
}

/* No event, and nothing wrong. */
static inline void nothing(struct reader *r)
{
	cr_assert_null(reader_peek(r));
	cr_assert_not(r->broken);
}

#endif
