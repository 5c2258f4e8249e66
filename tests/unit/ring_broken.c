/*
 * Streams that make no sense: the reader says so, stays where it is, and touches
 * nothing that is not the stream's.
 */
#include "tests/unit/ring.h"

TestSuite(ring_broken, .init = set_up, .timeout = 30);

/* The stream that is broken: small events, a chunk's turn, and a payload over the next. */
#define LARGE	(EVENTS + 5)	/* the event whose payload goes on */

static struct reader stream(void)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);

	tell_many(&w, LARGE);
	cr_assert(tell(&w, CHUNK_SIZE));
	cr_assert(tell(&w, 100));
	return r;
}

/* The reader comes as far as event `last`, and finds the stream broken there. */
static void breaks_behind(struct reader *r, uint64_t last)
{
	take_from_to(r, 0, last);
	cr_assert_null(reader_peek(r), "event %lu is believed", last);
	cr_assert(r->broken);
	cr_assert_null(reader_peek(r), "it stays broken");
}

#define BREAKS(name, last, ...) \
	Test(ring_broken, name) \
	{ \
		struct reader r = stream(); \
		struct lane *l = &lead->lane[0]; \
		struct event *e = cell(lead, l->first, (last) % EVENTS), \
			*turn = cell(lead, l->first, EVENTS); \
		(void)e, (void)turn; \
		__VA_ARGS__; \
		breaks_behind(&r, last); \
	}

BREAKS(kind_none, 4, e->kind = EVENT_NONE)
BREAKS(kind_unknown, 4, e->kind = EVENT_KINDS)
BREAKS(kind_far, 4, e->kind = 255)
BREAKS(turn_too_early, 4, e->kind = EVENT_TURN)
BREAKS(turn_missing, EVENTS, turn->kind = EVENT_CALL)
BREAKS(size_over_turn, 4, e->size = (EVENTS - 4) * CELL_SIZE)
BREAKS(size_over_chunk, 4, e->size = CHUNK_SIZE)
BREAKS(size_huge, 4, e->size = UINT16_MAX)
BREAKS(extent_wraps, 4, e->extent = UINT32_MAX)
BREAKS(size_over_head, 3, l->head = 5; e->size = 2 * CELL_SIZE)
BREAKS(chunk_next_past_end, EVENTS, turn->arg[0] = CHUNKS)
BREAKS(chunk_far, EVENTS, turn->arg[0] = 1000)
BREAKS(chunk_none, EVENTS, turn->arg[0] = CHUNK_NONE)
BREAKS(chunk_wraps, EVENTS, turn->arg[0] = 1ull << 32)
BREAKS(head_far, 0, l->head = CHUNKS * CHUNK_CELLS)
BREAKS(head_huge, 0, l->head = UINT64_MAX)

Test(ring_broken, first_chunk)
{
	struct writer w = open_lane(0);
	struct reader r;

	tell_many(&w, 5);
	lead->lane[0].first = CHUNKS;
	r = follow(FAST, 0);
	breaks_behind(&r, 0);
}

Test(ring_broken, head_goes_back)
{
	struct reader r = stream();

	lead->lane[0].head = 7;
	take_from_to(&r, 0, 7);
	lead->lane[0].head = 3;
	breaks_behind(&r, 0);
}

/* The payload goes on in an event that makes no sense. */
static void breaks_in_payload(void (*spoil)(struct event *more))
{
	struct reader r = stream();
	struct event *more = cell(lead, lead->lane[0].now, 0);
	const uint8_t *piece;
	size_t n, all = 0;

	cr_assert_eq(more->kind, EVENT_MORE);
	spoil(more);
	take_from_to(&r, 0, LARGE);
	cr_assert_not_null(reader_peek(&r));
	while ((n = reader_piece(&r, 4096, &piece)))
		all += n;
	cr_assert(r.broken);
	cr_assert_lt(all, CHUNK_SIZE);
	reader_take(&r);
	cr_assert_null(reader_peek(&r));
}

static void spoil_size(struct event *more)
{
	more->size = CHUNK_SIZE;
}

static void spoil_kind(struct event *more)
{
	more->kind = 77;
}

Test(ring_broken, more)
{
	breaks_in_payload(spoil_size);
}

Test(ring_broken, more_kind)
{
	breaks_in_payload(spoil_kind);
}

/* Chunks that go round: a stream without an end, and without an event. */
Test(ring_broken, ends_though_turns_do_not)
{
	struct reader r = stream();
	struct lane *l = &lead->lane[0];

	for (uint32_t i = 0; i < EVENTS; i++)
		*cell(lead, l->first, i) = (struct event){ .kind = EVENT_MORE };
	cell(lead, l->first, EVENTS)->arg[0] = l->first;
	l->head = CHUNKS * CHUNK_CELLS - 1;
	nothing(&r);
	for (int i = 0; i < 100; i++) {
		l->head += CHUNK_CELLS / 2;
		cr_assert_null(reader_peek(&r));
	}
}

static void spoil_somewhere(void)
{
	struct lane *l = &lead->lane[0];
	uint32_t chunk = (uint32_t)rand() % CHUNKS;
	uint8_t *at = (uint8_t *)cell(lead, chunk, (uint32_t)rand() % CHUNK_CELLS);

	switch (rand() % 8) {
	case 0:
		l->head += (uint64_t)rand() % 2000;
		break;
	case 1:
		cell(lead, chunk, EVENTS)->arg[0] = (uint64_t)rand() % (2 * CHUNKS);
		break;
	default:
		at[rand() % 24] = (uint8_t)(rand() >> 7);
	}
}

/* As far as it can be read, without touching what is not the stream's. */
static void read_all(struct reader *r)
{
	const uint8_t *piece;
	volatile uint8_t sum = 0;
	size_t n;

	for (int events = 0; events < CHUNKS * CHUNK_CELLS && reader_peek(r); events++) {
		for (int i = 0; i < 2000 && (n = reader_piece(r, CHUNK_SIZE, &piece)); i++)
			sum = (uint8_t)(sum + piece[0] + piece[n - 1]);
		reader_take(r);
	}
	cr_assert_leq(r->pos, CHUNKS * CHUNK_CELLS * 4);
}

Test(ring_broken, anywhere)
{
	struct reader r = stream();
	struct lane good = lead->lane[0];
	char *copy = malloc(CHUNKS * CHUNK_SIZE);

	memcpy(copy, cell(lead, 0, 0), CHUNKS * CHUNK_SIZE);
	srand(1);
	for (int round = 0; round < 3000; round++) {
		lead->lane[0] = good;
		memcpy(cell(lead, 0, 0), copy, CHUNKS * CHUNK_SIZE);
		for (int i = 1 + rand() % 20; i; i--)
			spoil_somewhere();
		r = follow(FAST, 0);
		read_all(&r);
	}
	free(copy);
}
