/*
 * Events of a recording.  A payload that did not fit into its chunk goes on in EVENT_MORE
 * events of its lane; such an event is whole when the lane has another, or its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/log/events.h"

#define PAYLOAD_MOST	(64u << 20)	/* of one event: what is beyond is not shown */

/* What a lane has of an event whose end is not known yet. */
struct open_event {
	bool is;
	struct event event;
	struct told told;
	uint8_t *bytes;
	size_t room;
};

struct events {
	told_take *take;
	void *ctx;
	uint64_t number;	/* of the last that began */
	struct open_event lane[LANES];
};

static void event_end(struct events *e, uint32_t lane)
{
	struct open_event *o = &e->lane[lane];

	MUST(lane < LANES);
	if (!o->is)
		return;
	o->told.event = &o->event;
	o->told.payload = o->bytes;
	e->take(e->ctx, &o->told);
	o->is = false;
}

static void payload_add(struct open_event *o, const void *bytes, size_t len)
{
	size_t want = o->told.len + len;

	if (want > PAYLOAD_MOST)
		return;
	if (want > o->room) {
		o->bytes = realloc(o->bytes, want * 2);
		MUST(o->bytes);
		o->room = want * 2;
	}
	if (len)
		memcpy(o->bytes + o->told.len, bytes, len);
	o->told.len = want;
}

static void event_begin(struct events *e, const struct log_frame *f, const struct event *event,
			uint64_t place)
{
	struct open_event *o = &e->lane[f->lane];

	o->told.behind = place;
	event_end(e, f->lane);
	o->is = true;
	o->event = *event;
	o->told = (struct told){ .number = ++e->number, .time_ns = f->time_ns, .place = place,
				 .lane = f->lane, .life = f->life, .pid = f->pid, .tid = f->tid };
}

/* A chunk ends with the cell of its turn: what ends before has room behind it, and is whole. */
static void whole_look(struct events *e, uint32_t lane, uint64_t behind)
{
	if (behind % CHUNK_CELLS == CHUNK_CELLS - 1)
		return;
	e->lane[lane].told.behind = behind;
	event_end(e, lane);
}

/* False: what stands in it is no row of events. */
static bool cells_take(struct events *e, const struct log_frame *f)
{
	const struct event *at = frame_payload(f);
	uint32_t cells = f->size / CELL_SIZE, n;

	for (uint32_t i = 0; i < cells; i += n) {
		const struct event *event = &at[i];

		n = extent_cells(event->extent);
		if (n > cells - i || event->kind >= EVENT_KINDS || event->kind == EVENT_TURN)
			return false;
		if (event->kind != EVENT_MORE)
			event_begin(e, f, event, f->at + i);
		if (e->lane[f->lane].is)
			payload_add(&e->lane[f->lane], extent_payload(event, event->extent),
				    event->size);
		whole_look(e, f->lane, f->at + i + n);
	}
	return true;
}

static bool frames_each(struct events *e, struct frames *f, frame_take *other)
{
	const struct log_frame *frame;

	while ((frame = frames_next(f))) {
		if (frame->kind == LOG_CELLS && !cells_take(e, frame)) {
			f->torn = true;
			snprintf(f->why, sizeof(f->why), "frame %lu: what it holds is no event",
				 (unsigned long)frame->number);
			return false;
		}
		if (frame->kind == LOG_CELLS)
			continue;
		if (frame->kind == LOG_CLOSED)
			event_end(e, frame->lane);
		other(e->ctx, frame);
	}
	return !f->torn;
}

bool events_each(struct frames *f, told_take *take, frame_take *other, void *ctx)
{
	struct events *e = calloc(1, sizeof(*e));
	bool whole;

	MUST(e && take && other);
	e->take = take;
	e->ctx = ctx;
	whole = frames_each(e, f, other);
	for (uint32_t i = 0; i < LANES; i++) {
		event_end(e, i);
		free(e->lane[i].bytes);
	}
	free(e);
	return whole;
}
