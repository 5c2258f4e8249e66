/*
 * Where a replay stands: see stand.h.  Events have the numbers that `mve log` shows, in the order
 * of the recording; a frame that has the event's is fed in two parts.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/log/stand.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"

#define FOLLOWER	1

static struct log_frame *frame_copy(const struct log_frame *frame)
{
	struct log_frame *copy = malloc(sizeof(*frame) + frame->size);

	MUST(copy);
	memcpy(copy, frame, sizeof(*frame) + frame->size);
	return copy;
}

uint64_t events_in(const struct log_frame *frame)
{
	const struct event *e = frame_payload(frame);
	uint32_t cells = frame->size / CELL_SIZE;
	uint64_t n = 0;

	for (uint32_t i = 0; i < cells; i += extent_cells(e[i].extent))
		n += e[i].kind != EVENT_MORE;
	return n;
}

/* The cell with which the frame's part that may be fed ends; all of it: its size. */
static uint32_t cells_before(struct stand *s, const struct log_frame *frame, uint32_t from,
			     const struct until *u)
{
	const struct event *e = frame_payload(frame);
	uint32_t cells = frame->size / CELL_SIZE;
	bool asked = CONSUME(until_asked, &u->asked);
	bool late = u->ns && frame->time_ns >= u->ns;

	for (uint32_t i = from; i < cells; i += extent_cells(e[i].extent)) {
		if (e[i].kind == EVENT_MORE)
			continue;
		if (asked && (late || (u->event && s->events + 1 >= u->event)))
			return i;
		s->events++;
	}
	return cells;
}

/* What is before the place, or what was behind it, goes out as a frame of its own. */
static const struct log_frame *part_of(struct stand *s, uint32_t from, uint32_t to)
{
	struct log_frame *part = s->part;
	uint8_t *bytes = (uint8_t *)(part + 1);
	static struct log_frame *out;

	MUST(to > from && to <= part->size / CELL_SIZE);
	free(out);
	out = malloc(sizeof(*out) + (to - from) * CELL_SIZE);
	MUST(out);
	*out = *part;
	out->at += from;
	out->size = (to - from) * CELL_SIZE;
	memcpy(out + 1, bytes + (size_t)from * CELL_SIZE, out->size);
	return out;
}

static const struct log_frame *hold(struct stand *s, struct until *u)
{
	u->lane = s->part->lane;
	u->life = s->part->life;
	u->place = s->part->at + s->cell;
	u->next = s->events + 1;
	s->is_held = true;
	u->held = CONSUME(until_asked, &u->asked);
	return NULL;
}

/* The rest of a frame that was handed out in part. */
static const struct log_frame *rest_next(struct stand *s, struct until *u)
{
	uint32_t from = s->cell, cells = s->part->size / CELL_SIZE;
	const struct log_frame *out;

	s->cell = cells_before(s, s->part, from, u);
	if (s->cell == from)
		return hold(s, u);
	out = part_of(s, from, s->cell);
	if (s->cell == cells) {
		free(s->part);
		s->part = NULL;
	}
	return out;
}

const struct log_frame *stand_next(struct stand *s, struct frames *f, struct until *u)
{
	const struct log_frame *frame;
	uint32_t to;

	s->is_held = false;
	if (s->part)
		return rest_next(s, u);
	frame = frames_next(f);
	if (!frame || frame->kind != LOG_CELLS)
		return frame;
	to = cells_before(s, frame, 0, u);
	if (to >= frame->size / CELL_SIZE)
		return frame;
	s->part = frame_copy(frame);
	s->cell = to;
	return to ? part_of(s, 0, to) : hold(s, u);
}

/* It has read all that is before, and sleeps in front of the lane's end. */
void stand_look(const struct stand *s, struct until *u, const struct section *follower)
{
	const struct cursor *c = &follower->cursor[u->lane % LANES];
	uint32_t asleep = __atomic_load_n(&follower->asleep[u->lane % LANES], __ATOMIC_RELAXED);

	if (!s->is_held || u->stands == u->held || c->life != u->life)
		return;
	/* A turn at the end of a chunk is behind what was read before it. */
	if (c->at != u->place && c->at + 1 != u->place)
		return;
	if (asleep == asleep_at(c->at))
		PUBLISH(until_stands, &u->stands, u->held);
}

/* What memory says of pids is only asked about. */
bool stand_is_watched(const struct until *u, const struct section *follower)
{
	bool any = false;

	for (uint32_t i = 0; CONSUME(until_asked, &u->asked) && i < LANES && !any; i++) {
		pid_t pid = CONSUME(cursor_pid, &follower->cursor[i].pid);

		any = pid > 0 && process_tracer(pid);
	}
	return any;
}

/* --- the monitor ---------------------------------------------------------------------- */

static struct until *until_of(const struct monitor *m)
{
	return m->options->replay && m->options->replay->fed ? &m->options->replay->fed->until
							     : NULL;
}

bool stand_ask(struct monitor *m, uint64_t event, uint64_t ns)
{
	struct until *u = until_of(m);

	MUST(u);
	if (event && event < u->next)
		return false;
	u->event = event;
	u->ns = ns;
	PUBLISH_BY(until_asked, fetch_add, &u->asked, 1);
	return true;
}

json_t *stand_json(struct monitor *m)
{
	const struct until *u = until_of(m);
	const struct cursor *c = &streams_part(m, FOLLOWER)->cursor[u->lane % LANES];
	uint32_t stands = CONSUME(until_stands, &u->stands);
	bool is = stands && stands == u->asked;

	return json_pack("{s:b, s:I, s:i, s:i, s:b}", "stands", is, "event", (json_int_t)u->next,
			 "pid", is ? c->pid : 0, "tid", is ? c->owner : 0, "whole",
			 m->options->replay->fed->whole);
}

void stand_say(struct monitor *m)
{
	static uint32_t said;
	const struct until *u = until_of(m);
	json_t *j;

	if (!u || !u->asked || CONSUME(until_stands, &u->stands) != u->asked || said == u->asked)
		return;
	said = u->asked;
	j = stand_json(m);
	say_error(NULL, "%s: stands at event %lu: pid %d, thread %d", m->session.name,
		  (unsigned long)u->next, (int)json_integer_value(json_object_get(j, "pid")),
		  (int)json_integer_value(json_object_get(j, "tid")));
	json_decref(j);
}
