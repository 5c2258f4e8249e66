/*
 * Frames that wait, a row for each lane, and lives that are named.  Of the events it looks at
 * their kinds, sizes and clones: what is not an event ends the look, nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/outside/log/ahead.h"

/* --- rows ---------------------------------------------------------------------------- */

bool ahead_room(const struct ahead *a, const struct log_frame *frame)
{
	return a->bytes + frame->size <= AHEAD_BYTES;
}

bool ahead_add(struct ahead *a, const struct log_frame *frame)
{
	struct ahead_frame *new;

	MUST(frame->lane < LANES);
	if (!ahead_room(a, frame))
		return false;
	new = malloc(sizeof(*new) + frame->size);
	MUST(new);
	new->next = NULL;
	memcpy(&new->frame, frame, sizeof(*frame) + frame->size);
	if (!a->lane[frame->lane].first)
		a->lane[frame->lane].end = &a->lane[frame->lane].first;
	*a->lane[frame->lane].end = new;
	a->lane[frame->lane].end = &new->next;
	a->frames++;
	a->bytes += frame->size;
	return true;
}

const struct log_frame *ahead_first(const struct ahead *a, uint32_t lane)
{
	MUST(lane < LANES);
	return a->lane[lane].first ? &a->lane[lane].first->frame : NULL;
}

void ahead_take(struct ahead *a, uint32_t lane)
{
	struct ahead_frame *first = a->lane[lane].first;

	MUST(first && a->frames && a->bytes >= first->frame.size);
	a->lane[lane].first = first->next;
	a->frames--;
	a->bytes -= first->frame.size;
	free(first);
}

/* --- lives --------------------------------------------------------------------------- */

bool event_bears(const struct event *e, uint32_t *lane, uint32_t *life)
{
	*lane = (uint32_t)e->arg[CLONE_LANE_ARG];
	*life = (uint32_t)e->arg[CLONE_LIFE_ARG];
	return e->kind == EVENT_CALL && e->result >= 0 && *lane < LANES &&
	       call_bears(call_find(e->call));
}

uint32_t event_span(const struct event *e, uint32_t cells)
{
	uint32_t n = extent_cells(e->extent);

	return n < cells ? n : cells;
}

static uint64_t life_key(uint32_t lane, uint32_t life)
{
	return (uint64_t)lane << 32 | life;
}

static void life_add(struct ahead *a, uint64_t key)
{
	if (a->lives_count == a->lives_room) {
		a->lives_room = a->lives_room ? a->lives_room * 2 : 1024;
		a->lives = realloc(a->lives, a->lives_room * sizeof(*a->lives));
		MUST(a->lives);
	}
	a->lives[a->lives_count++] = key;
}

static void frame_look(struct ahead *a, const struct log_frame *frame)
{
	const struct event *e = frame_payload(frame);
	uint32_t cells = frame->kind == LOG_CELLS ? frame->size / CELL_SIZE : 0;
	uint32_t lane, life;

	for (uint32_t i = 0; i < cells; i += event_span(&e[i], cells - i))
		if (event_bears(&e[i], &lane, &life))
			life_add(a, life_key(lane, life));
}

static int keys_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void lives_look(struct ahead *a, const struct log_frame *now,
		       const struct log_frame *part, const struct frames *rest)
{
	const struct log_frame *h;
	struct frames copy;

	if (now)
		frame_look(a, now);
	if (part)
		frame_look(a, part);
	for (uint32_t i = 0; i < LANES; i++)
		for (struct ahead_frame *f = a->lane[i].first; f; f = f->next)
			frame_look(a, &f->frame);
	frames_copy(rest, &copy);
	while ((h = frames_next(&copy)))
		frame_look(a, h);
	frames_close(&copy);
	if (a->lives_count)
		qsort(a->lives, a->lives_count, sizeof(*a->lives), keys_compare);
	a->looked = true;
}

bool ahead_names(struct ahead *a, const struct log_frame *now, const struct log_frame *part,
		 const struct frames *rest, uint32_t lane, uint32_t life)
{
	uint64_t key = life_key(lane, life);

	if (!a->looked)
		lives_look(a, now, part, rest);
	return a->lives_count &&
	       bsearch(&key, a->lives, a->lives_count, sizeof(key), keys_compare);
}
