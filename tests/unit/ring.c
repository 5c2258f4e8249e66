/*
 * The ring's two sides, one step at a time: events of every size, room and who has
 * it, lanes and their lives, streams that go on in another version's.
 */
#include "engine/core/holds.h"
#include "tests/unit/ring.h"

TestSuite(ring, .init = set_up, .timeout = 30);

/*
 * Another's place, between the two words by which a cursor moves: in the chunk that comes
 * next, by a position in this one, any cell would be taken for its next event.
 */
Test(ring, place_of_another)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0), other;
	struct cursor *c = &streams_section(&view[FAST], FAST)->cursor[0], before;

	tell_many(&w, EVENTS + 2);
	take_from_to(&r, 0, EVENTS - 1);
	cr_assert(reader_attach_other(&other, &view[FAST], 0));
	cr_assert_eq(other.pos, EVENTS - 1);
	before = *c;
	take_from_to(&r, EVENTS - 1, EVENTS + 1);
	cr_assert_neq(c->place, before.place);
	cr_assert(reader_attach_other(&other, &view[FAST], 0));
	c->at = before.at;	/* it is about to be stored */
	cr_assert(!reader_attach_other(&other, &view[FAST], 0));
}

/* --- events ---------------------------------------------------------------------------- */

Test(ring, small_sizes)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0), s = follow(SLOW, 0);

	for (size_t size = 0; size < 700; size++) {
		cr_assert(tell(&w, size));
		take(&r, size);
		take(&s, size);
		nothing(&r);
	}
}

Test(ring, large_sizes)
{
	static const size_t sizes[] = {
		ROOM - 1, ROOM, ROOM + 1, ROOM + CELL_SIZE, CHUNK_SIZE - 1, CHUNK_SIZE,
		CHUNK_SIZE + 1, 2 * ROOM, 2 * ROOM + 1, 2 * CHUNK_SIZE,
	};
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0), s = follow(SLOW, 0);

	for (int round = 0; round < 20; round++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			cr_assert(tell(&w, sizes[i]));
			cr_assert(tell(&w, (size_t)round));
			take_from_to(&r, told - 2, told);
			take_from_to(&s, told - 2, told);
		}
}

/* Every place of a chunk as the beginning, with sizes around what is left of it. */
Test(ring, exact_fits)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0), s = follow(SLOW, 0);

	for (uint32_t skip = 0; skip < EVENTS; skip += 3)
		for (int off = -1; off <= 1; off++) {
			size_t room;

			tell_many(&w, (int)skip);
			cr_assert(tell(&w, 0));
			room = (CHUNK_CELLS - 1 - writer_at(&w)) * CELL_SIZE;
			room = room ? room - CELL_SIZE : ROOM;
			cr_assert(tell(&w, room + (size_t)(room || off > 0 ? off : 0)));
			take_from_to(&r, told - skip - 2, told);
			take_from_to(&s, told - skip - 2, told);
		}
}

/* The last free cell of a chunk has room for a header only. */
Test(ring, empty_more)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);

	tell_many(&w, EVENTS - 2);
	cr_assert(tell(&w, 0));
	cr_assert_eq(writer_at(&w), CHUNK_CELLS - 2);
	cr_assert(tell(&w, 200));
	take_from_to(&r, 0, told);
	tell_many(&w, 2);
	/* Fills all but the last free cell; its EVENT_MORE there is empty. */
	cr_assert(tell(&w, (CHUNK_CELLS - 3 - writer_at(&w)) * CELL_SIZE));
	cr_assert_eq(writer_at(&w), CHUNK_CELLS - 2);
	cr_assert_not_null(writer_begin(&w, EVENT_MORE, 7));
	cr_assert_eq(writer_room(&w), 0);
	writer_commit(&w);
	cr_assert_not_null(writer_begin(&w, EVENT_MORE, 7));
	*w.at++ = 42;
	writer_commit(&w);
	take_from_to(&r, told - 3, told - 1);

	const struct event *e = reader_peek(&r);
	const uint8_t *piece;

	cr_assert_not_null(e);
	same_payload(&r, told - 1, (size_t)e->result, CHUNK_SIZE);
	cr_assert_eq(reader_piece(&r, 8, &piece), 1, "an empty piece is not the end");
	cr_assert_eq(*piece, 42);
	reader_take(&r);
	nothing(&r);
}

Test(ring, unread_payload_is_skipped)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0), s = follow(SLOW, 0);

	for (int i = 0; i < 60; i++) {
		cr_assert(tell(&w, CHUNK_SIZE + (size_t)i * 100));
		cr_assert(tell(&w, 10));
		cr_assert_eq(reader_peek(&r)->seq, told - 2);
		reader_take(&r);
		take(&r, told - 1);
		/* Half of it, too. */
		cr_assert_eq(reader_peek(&s)->seq, told - 2);
		same_payload(&s, told - 2, (size_t)i * CHUNK_SIZE / 60, 333);
		reader_take(&s);
		take(&s, told - 1);
	}
}

/* What is skipped has room at once: the writer may still be at the same event. */
Test(ring, skipped_payload_larger_than_the_ring)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);

	conduct->following = BIT(FAST);
	cr_assert_not_null(writer_begin(&w, EVENT_CALL, 7));
	writer_commit(&w);
	cr_assert_not_null(reader_peek(&r));
	reader_take(&r);
	for (int i = 0; i < 10 * CHUNKS; i++) {
		cr_assert_not_null(writer_begin(&w, EVENT_MORE, 7), "piece %d", i);
		w.at += writer_room(&w);
		writer_commit(&w);
		nothing(&r);
	}
	cr_assert(tell(&w, 5));
	take(&r, 0);
}

/* And what is read, if the reader says so; one that looks ahead has no say. */
Test(ring, read_payload_larger_than_the_ring)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0), ahead;
	const uint8_t *piece;
	size_t all = 0, n;

	conduct->following = BIT(FAST);
	cr_assert(tell(&w, 0));
	cr_assert_not_null(writer_begin(&w, EVENT_CALL, 7));
	writer_commit(&w);
	cr_assert_not_null(reader_peek(&r));
	ahead = r;
	cr_assert_not_null(reader_next(&ahead));
	reader_release(&ahead);
	take(&r, 0);
	cr_assert_not_null(reader_peek(&r));
	for (int i = 0; i < 10 * CHUNKS; i++) {
		cr_assert_not_null(writer_begin(&w, EVENT_MORE, 7), "piece %d", i);
		w.at += writer_room(&w);
		writer_commit(&w);
		while ((n = reader_piece(&r, CHUNK_SIZE, &piece)))
			all += n;
		reader_release(&r);
	}
	cr_assert_eq(all, (10 * CHUNKS - 1) * ROOM + ROOM - 2 * CELL_SIZE);
	reader_take(&r);
	cr_assert(tell(&w, 0));
	take(&r, 1);
}

Test(ring, looked_at_again_until_taken)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);

	cr_assert(tell(&w, 2 * CHUNK_SIZE));
	cr_assert(tell(&w, 3));
	for (size_t part = 0; part < 2 * CHUNK_SIZE; part += 5000) {
		cr_assert_eq(reader_peek(&r)->seq, 0);
		same_payload(&r, 0, part, 700);
	}
	take_from_to(&r, 0, 2);
}

Test(ring, payload_comes_later)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);
	const uint8_t *piece;

	cr_assert_not_null(writer_begin(&w, EVENT_CALL, 7));
	nothing(&r);
	memcpy(w.at, "one", 3);
	w.at += 3;
	writer_commit(&w);
	cr_assert_not_null(reader_peek(&r));
	cr_assert_eq(reader_piece(&r, 64, &piece), 3);
	cr_assert_eq(reader_piece(&r, 64, &piece), 0);
	writer_begin(&w, EVENT_MORE, 7)->flags = EVENT_SIGNAL_NEXT;
	memcpy(w.at, "two", 3);
	w.at += 3;
	cr_assert_eq(reader_piece(&r, 64, &piece), 0);
	writer_commit(&w);
	cr_assert_eq(reader_piece(&r, 64, &piece), 3);
	cr_assert_eq(memcmp(piece, "two", 3), 0);
	cr_assert_eq(reader_take(&r), EVENT_SIGNAL_NEXT);
	nothing(&r);
}

/* A thread that goes on where another program of it was. */
Test(ring, attached_again)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);

	conduct->following = BIT(FAST);
	for (int i = 0; i < 5000; i++) {
		cr_assert(tell(&w, (size_t)i % 300));
		writer_attach(&w, &view[LEADER], 0);
		take(&r, (uint64_t)i);
		reader_attach(&r, &view[FAST], 0);
	}
}

/* --- room ---------------------------------------------------------------------------------- */

Test(ring, full_and_free_again)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0), s = follow(SLOW, 0);

	for (int i = 0; i < CHUNKS * EVENTS; i++)
		cr_assert(tell(&w, 0), "event %d", i);
	cr_assert_not(tell(&w, 0));
	cr_assert_eq(writer_held_by(&w), BIT(FAST) | BIT(SLOW));
	take_from_to(&r, 0, EVENTS + 1);
	cr_assert_eq(writer_held_by(&w), BIT(SLOW));
	cr_assert_not(tell(&w, 0));
	take_from_to(&s, 0, EVENTS);
	cr_assert_not(tell(&w, 0), "the turn is not read");
	take_from_to(&s, EVENTS, EVENTS + 1);
	tell_many(&w, EVENTS);
	cr_assert_not(tell(&w, 0));
	take_from_to(&r, EVENTS + 1, told);
	take_from_to(&s, EVENTS + 1, told);
	nothing(&r);
}

Test(ring, dropped_follower_is_not_waited_for)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);

	for (uint64_t i = 0; tell(&w, 0); i++)
		take(&r, i);
	cr_assert_eq(writer_held_by(&w), BIT(SLOW), "it has not even begun");
	lead->dropped = BIT(SLOW);
	for (int i = 0; i < 10 * EVENTS; i++) {
		cr_assert(tell(&w, 0));
		take(&r, told - 1);
	}
	lead->dropped |= BIT(FAST);
	tell_many(&w, 10 * EVENTS);
}

/* What is borrowed is given back, whatever an image would read again. */
Test(ring, image_is_not_waited_for)
{
	struct section *its = streams_section(&(struct streams){ conduct, FAST }, FAST);
	struct reader r, s;
	struct writer w;

	lead->chunk_owner[CHUNKS - 1] = CHUNK_SPARE;
	w = open_lane(0);
	r = follow(FAST, 0);
	s = follow(SLOW, 0);
	while (!w.owes)
		cr_assert(tell(&w, 0));
	its->kept[0] = its->cursor[0];
	its->image = 1;
	take_from_to(&s, 0, told);
	cr_assert(!writer_settle(&w));
	take_from_to(&r, 0, told);
	its->image = 2;
	cr_assert(writer_settle(&w));
	cr_assert_eq(lead->unkept[FAST], 2);
}

/* But where the leader waits for followers, one that is needed is read from there. */
Test(ring, image_that_is_needed_is_waited_for)
{
	struct section *its = streams_section(&(struct streams){ conduct, FAST }, FAST);
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);

	conduct->following = BIT(FAST);
	its->kept[0] = its->cursor[0];
	its->image = 3;
	its->needed = 1;
	conduct->when_full = WHEN_FULL_BLOCK;
	for (int i = 0; i < 3 * CHUNKS * EVENTS && tell(&w, 0); i++)
		take(&r, told - 1);
	cr_assert_eq(writer_held_by(&w), BIT(FAST));
	cr_assert_neq(lead->unkept[FAST], 3);
	its->needed = 0;
	cr_assert(tell(&w, 0));
	cr_assert_eq(lead->unkept[FAST], 3);
	its->image = 4;
	its->needed = 1;
	conduct->when_full = WHEN_FULL_DROP;
	for (int i = 0; i < 3 * CHUNKS * EVENTS; i++) {
		take(&r, told - 1);
		cr_assert(tell(&w, 0));
	}
}

Test(ring, two_chunks_for_who_keeps_up)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);

	conduct->following = BIT(FAST);
	tell_many(&w, CHUNKS * EVENTS);
	cr_assert_eq(chunks_owned(), CHUNKS);
	take_from_to(&r, 0, told);
	for (int i = 0; i < 3 * EVENTS; i++) {
		tell_many(&w, 1);
		take(&r, told - 1);
	}
	cr_assert_eq(chunks_owned(), 2);
}

/* Bursts come and go: they touch the same memory, not the whole ring in turn. */
Test(ring, lowest_chunks_first)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);

	conduct->following = BIT(FAST);
	for (int burst = 0; burst < 10; burst++) {
		uint64_t first = told;

		tell_many(&w, 2 * EVENTS);
		take_from_to(&r, first, told);
		cr_assert_eq(cell(lead, CHUNKS - 1, 0)->kind, EVENT_NONE, "burst %d", burst);
	}
}

/* Whose chunks the ring is full of, and who makes it so, need not be the same lane. */
Test(ring, idle_lane_gives_its_chunks)
{
	struct writer idle = open_lane(0), w = open_lane(1);
	struct reader ri = follow(FAST, 0), si = follow(SLOW, 0);
	struct reader r = follow(FAST, 1), s = follow(SLOW, 1);
	uint64_t first;

	tell_many(&idle, 3 * EVENTS);
	take_from_to(&ri, 0, told);
	first = told;
	tell_many(&w, EVENTS);
	take_from_to(&r, first, told);
	take_from_to(&s, first, told);
	cr_assert_not(tell(&w, 0));
	cr_assert_eq(writer_held_by(&w), BIT(SLOW), "FAST has read all that there is");
	take_from_to(&si, 0, first);
	for (int i = 0; i < 3 * EVENTS; i++) {
		tell_many(&w, 1);
		take(&r, told - 1);
		take(&s, told - 1);
	}
	/* And goes on with what is left. */
	first = told;
	tell_many(&idle, 2 * EVENTS);
	take_from_to(&ri, first, told);
	take_from_to(&si, first, told);
}

Test(ring, closed_lane_gives_its_chunks)
{
	struct writer gone = open_lane(0), w = open_lane(1);
	struct reader rg = follow(FAST, 0), r = follow(FAST, 1);
	uint64_t first;

	conduct->following = BIT(FAST);
	tell_many(&gone, 3 * EVENTS);
	lane_close(&view[LEADER], 0);
	first = told;
	tell_many(&w, EVENTS);
	cr_assert_not(tell(&w, 0));
	take_from_to(&rg, 0, first);
	cursor_done(&view[FAST], 0);
	tell_many(&w, EVENTS);
	take_from_to(&r, first, told);
}

/* After 2^32 chunks the serials begin again. */
Test(ring, serials_wrap)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0), s = follow(SLOW, 0);
	struct lane *l = &lead->lane[0];

	l->base = UINT32_MAX - 5;
	l->oldest = (uint64_t)l->base << 32 | l->now;
	for (int chunk = 0; chunk < 20; chunk++) {
		uint64_t first = told;

		tell_many(&w, CHUNKS / 2 * EVENTS);
		take_from_to(&r, first, told);
		while (tell(&w, 0))
			take(&r, told - 1);
		cr_assert_eq(writer_held_by(&w), BIT(SLOW), "chunk %d", chunk);
		take_from_to(&s, first, told);
	}
}

/* --- lanes --------------------------------------------------------------------------------- */

Test(ring, lanes_are_fewer_than_chunks)
{
	for (int i = 0; i < CHUNKS - 1; i++)
		open_lane(i);
	cr_assert_eq(lane_open(&view[LEADER], ~0u), -1);
	cr_assert_eq(lead->lanes_high, CHUNKS - 1);
	cr_assert_eq(chunks_owned(), CHUNKS - 1);
}

Test(ring, lanes_are_held_by_who_has_not_read_them)
{
	for (int i = 0; i < CHUNKS - 1; i++)
		open_lane(i);
	cr_assert_eq(lanes_held_by(&view[LEADER]), 0, "their threads are there");
	for (uint32_t i = 0; i < CHUNKS - 1; i++) {
		lane_close(&view[LEADER], i);
		follow(FAST, i);
		follow(SLOW, i);
		cursor_done(&view[FAST], i);
	}
	cr_assert_eq(lane_open(&view[LEADER], ~0u), -1);
	cr_assert_eq(lanes_held_by(&view[LEADER]), BIT(SLOW));
	cursor_done(&view[SLOW], 1);
	cr_assert_eq(lane_open(&view[LEADER], ~0u), 1);
}

/* SLOW came late, and knows nothing of a lane that was over by then. */
Test(ring, held_by_those_who_are_told)
{
	open_lane(0);
	follow(FAST, 0);
	lead->lane[0].readers = BIT(FAST);
	lane_close(&view[LEADER], 0);
	open_lane(1);
	cr_assert_eq(lead->lane[0].life, 1, "FAST has not read it");
	cursor_done(&view[FAST], 0);
	open_lane(0);
}

Test(ring, no_chunk_for_a_lane)
{
	struct writer w = open_lane(0);

	tell_many(&w, CHUNKS * EVENTS);
	cr_assert_eq(lane_open(&view[LEADER], ~0u), -1);
	cr_assert_eq(lanes_held_by(&view[LEADER]), BIT(FAST) | BIT(SLOW));
	lead->dropped = BIT(FAST) | BIT(SLOW);
	open_lane(1);
}

Test(ring, reused_when_all_are_done)
{
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0), s = follow(SLOW, 0);

	for (uint32_t life = 1; life < 20; life++) {
		uint64_t first = told;

		cr_assert_eq(lead->lane[0].life, life);
		tell_many(&w, 50 + (int)life * EVENTS / 10);
		take_from_to(&r, first, told);
		cr_assert_not(reader_at_end(&r), "it is open");
		lane_close(&view[LEADER], 0);
		cr_assert(reader_at_end(&r));
		cr_assert_not(reader_at_end(&s));
		cursor_done(&view[FAST], 0);
		w = open_lane(1);
		lane_cancel(&view[LEADER], 1);
		take_from_to(&s, first, told);
		cursor_done(&view[SLOW], 0);
		w = open_lane(0);
		r = follow(FAST, 0);
		s = follow(SLOW, 0);
		nothing(&r);
	}
}

Test(ring, not_reused_before_a_follower_has_begun)
{
	open_lane(0);
	lane_close(&view[LEADER], 0);
	open_lane(1);
	for (int v = FAST; v <= SLOW; v += SLOW - FAST) {
		lane_close(&view[LEADER], 1);
		lane_cancel(&view[LEADER], 1);
		open_lane(1);
		follow((uint32_t)v, 0);
		cursor_done(&view[v], 0);
	}
	open_lane(0);
}

/* A child was not born: nobody will ever read its lane. */
Test(ring, cancelled_lane_is_free)
{
	for (int i = 0; i < 100; i++) {
		open_lane(0);
		lane_cancel(&view[LEADER], 0);
	}
	cr_assert_eq(chunks_owned(), 1);
}

/* --- streams that go on in another ------------------------------------------------------------ */

/* What FAST's cursor says of the old leader's lane means nothing in the new one's. */
Test(ring, switched)
{
	struct writer w = open_lane(0), next;
	struct reader r = follow(FAST, 0);

	conduct->following = BIT(FAST);
	tell_many(&w, 3 * EVENTS);
	take_from_to(&r, 0, told);
	cursor_done(&view[FAST], 0);	/* of a life with the same number */
	conduct->ended = BIT(LEADER);
	cr_assert(reader_at_end(&r));
	cr_assert_eq(lane_open(&view[SLOW], ~0u), 0);
	cr_assert_eq(after->lane[0].life, lead->lane[0].life);
	writer_attach(&next, &view[SLOW], 0);
	for (told = 0; tell(&next, 0);)
		;
	cr_assert_eq(told, CHUNKS * EVENTS);
	cr_assert_eq(writer_held_by(&next), BIT(FAST));
	reader_switch(&r, SLOW);
	cr_assert_not(reader_at_end(&r));
	cr_assert_eq(writer_held_by(&next), BIT(FAST));
	take_from_to(&r, 0, CHUNKS * EVENTS);
	cr_assert(tell(&next, 0));
	take(&r, CHUNKS * EVENTS);
}

/* SLOW takes over, and the old leader follows it: the readers come before the chunk. */
Test(ring, reopened)
{
	bool owes;
	struct writer w = open_lane(0), next;
	struct lane *l = &after->lane[0];
	struct reader r, f = follow(FAST, 0);
	uint32_t life = lead->lane[0].life;

	tell_many(&w, 5);
	take_from_to(&f, 0, 5);
	conduct->following = BIT(FAST) | BIT(LEADER);
	after->lanes_high = 2;
	*l = (struct lane){ .first = CHUNK_NONE, .now = CHUNK_NONE, .oldest = CHUNK_NONE,
			    .state = LANE_OPEN, .life = life };
	after->lane[1] = *l;	/* its thread does not come */
	cursor_begin(&view[LEADER], 0, life, SLOW);
	reader_attach(&r, &view[LEADER], 0);
	nothing(&r);
	cr_assert(lane_reopen(&view[SLOW], 0, &owes));
	cr_assert(!owes);
	writer_attach(&next, &view[SLOW], 0);
	for (told = 0; tell(&next, 0);)
		;
	cr_assert_eq(writer_held_by(&next), BIT(FAST) | BIT(LEADER));
	take_from_to(&r, 0, told);
	cr_assert_eq(writer_held_by(&next), BIT(FAST));
	reader_switch(&f, SLOW);
	take_from_to(&f, 0, told);
	tell_many(&next, EVENTS);
	take_from_to(&r, told - EVENTS, told);
	/* A lane that had ended, and has no chunk either. */
	after->dropped = BIT(FAST) | BIT(LEADER);
	lane_close(&view[SLOW], 1);
	cr_assert_eq(lane_open(&view[SLOW], ~0u), 1);
	writer_attach(&next, &view[SLOW], 1);
	tell_many(&next, 3 * EVENTS);
}

/* So is that of one that still has to read: on its way it comes to a further one. */
Test(ring, image_of_one_behind_is_waited_for)
{
	struct section *its = streams_section(&(struct streams){ conduct, FAST }, FAST);
	struct writer w = open_lane(0);
	struct reader r = follow(FAST, 0);
	uint64_t read;

	conduct->following = BIT(FAST);
	conduct->when_full = WHEN_FULL_BLOCK;
	its->kept[0] = its->cursor[0];
	its->image = 3;
	while (tell(&w, 0))
		;
	take_from_to(&r, 0, read = 2 * EVENTS);
	cr_assert_not(tell(&w, 0));
	its->kept[0] = its->cursor[0];
	its->image = 4;
	while (tell(&w, 0))
		;
	cr_assert_neq(lead->unkept[FAST], 4);
	cr_assert_geq(told, read + (CHUNKS - 1) * EVENTS);
	cr_assert_not(images_let_go(&view[LEADER], lead, 0));
	its->asleep[0] = asleep_at(lead->lane[0].head);
	its->needed = 1;
	cr_assert(images_let_go(&view[LEADER], lead, 0), "half of an event is told");
	its->asleep[0] = its->needed = 0;
	its->image = 6;
	cr_assert(images_let_go(&view[LEADER], lead, LANES), "a thread that is just made");
	its->image = 5;
	take_from_to(&r, read, told);
	cr_assert(tell(&w, 0), "all of the lane is read");
	cr_assert_eq(lead->unkept[FAST], 5);
}
