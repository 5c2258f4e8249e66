/*
 * What the leader did where a follower stands: its events are still in the ring,
 * since the follower has not taken them.  They are read as the follower would read
 * them, but with a cursor of our own, so that nothing moves.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/report/report.h"

#define LOOKS_MAX	512
#define PAYLOAD_MAX	(32u << 20)

#define MOVES_MOST	100	/* looks at a cursor while its thread writes it */

static bool cursor_read(const struct cursor *theirs, struct cursor *ours)
{
	for (int i = 0; i < MOVES_MOST; i++) {
		*ours = *(const volatile struct cursor *)theirs;
		if (ours->place == cursor_place(ours->at, place_chunk(ours->place)))
			return ours->source < VERSIONS;
	}
	return false;
}

/* As reader_attach(), but the cursor is ours; false when it makes no sense. */
static bool attach(struct reader *r, struct streams *s, struct cursor *ours, uint32_t lane)
{
	if (!cursor_read(&streams_section(s, s->self)->cursor[lane], ours))
		return false;
	*r = (struct reader){ .streams = s, .index = lane, .cursor = ours,
			      .from = streams_section(s, ours->source), .pos = ours->at,
			      .head = ours->at, .chunk = place_chunk(ours->place) };
	return true;
}

static void payload_take(struct reader *r, struct report_event *e)
{
	size_t cap = 0, n;
	const uint8_t *at;

	e->payload = NULL;
	e->len = 0;
	while (e->len < PAYLOAD_MAX && (n = reader_piece(r, PAYLOAD_MAX - e->len, &at))) {
		if (e->len + n > cap) {
			uint8_t *more = realloc(e->payload, cap = (e->len + n) * 2);

			if (!more)
				return;
			e->payload = more;
		}
		MUST(n <= PAYLOAD_MAX - e->len && e->len + n <= cap);
		memcpy(e->payload + e->len, at, n);
		e->len += n;
	}
}

bool stream_only_looks(const struct conduct *streams, uint32_t version, uint32_t lane)
{
	struct streams s = { streams, version };
	const struct event *e;
	struct cursor ours;
	struct reader r;

	/* One that it has not begun: it has its beginning to take in another. */
	if (!attach(&r, &s, &ours, lane) || r.from->lane[lane].life != ours.life)
		return true;
	e = reader_peek(&r);
	for (int i = 0; e && i < LOOKS_MAX && (event_looks(e) || event_aside(e)); i++) {
		reader_take(&r);
		e = reader_peek(&r);
	}
	return !e && !r.broken;
}

uint64_t stream_next(const struct conduct *streams, uint32_t version, uint32_t lane)
{
	struct streams s = { streams, version };
	const struct event *e;
	struct cursor ours;
	struct reader r;
	uint64_t seq;

	if (!attach(&r, &s, &ours, lane) || r.from->lane[lane].life != ours.life)
		return 0;
	for (int i = 0; i < LOOKS_MAX && (e = reader_peek(&r)); i++) {
		seq = __atomic_load_n(&e->seq, __ATOMIC_RELAXED) & ORDER_MASK;
		if (seq && !event_looks(e))
			return seq;
		reader_take(&r);
	}
	return 0;
}

unsigned report_ahead(const struct conduct *streams, uint32_t version, uint32_t lane,
		      struct report_event *e, unsigned max)
{
	struct streams s = { streams, version };
	const struct event *event;
	struct cursor ours;
	struct reader r;
	unsigned n = 0;

	if (!streams || version >= VERSIONS || lane >= LANES || !attach(&r, &s, &ours, lane))
		return 0;
	while (n < max && (event = reader_peek(&r))) {
		e[n].event = *event;
		if (event->kind == EVENT_CALL || event->kind == EVENT_SIGNAL)
			payload_take(&r, &e[n++]);
		reader_take(&r);
	}
	return n;
}
