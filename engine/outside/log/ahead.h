/*
 * What the feeder has read of a recording and cannot feed yet: a row of frames for each lane;
 * and which lives of lanes clones name, in all that is still to come.
 */
#ifndef MVE_OUTSIDE_LOG_AHEAD_H
#define MVE_OUTSIDE_LOG_AHEAD_H

#include "engine/outside/log/frames.h"

/*
 * Limit (recordings): bytes that a replay reads ahead, where a lane waits for its next life, or
 * for what others did before. Beyond: it waits with the rest, until there is room; what is not
 * seen by then others did not do before.
 */
#define AHEAD_BYTES	(256u << 20)

struct ahead_frame {
	struct ahead_frame *next;
	struct log_frame frame;		/* its payload is behind it */
};

struct ahead {
	struct { struct ahead_frame *first, **end; } lane[LANES];
	unsigned frames;
	uint64_t bytes;
	uint64_t *lives;		/* sorted, once they have been looked for */
	size_t lives_count, lives_room;
	bool looked;
};

/* A copy of it, behind what its lane has; false: there is no room. */
bool ahead_add(struct ahead *a, const struct log_frame *frame);
bool ahead_room(const struct ahead *a, const struct log_frame *frame);
/* The lane's first, or NULL. */
const struct log_frame *ahead_first(const struct ahead *a, uint32_t lane);
void ahead_take(struct ahead *a, uint32_t lane);

/* The life that the event's child begins to read, if it has one. */
bool event_bears(const struct event *e, uint32_t *lane, uint32_t *life);
/* Cells of an event that stands at the first of so many. */
uint32_t event_span(const struct event *e, uint32_t cells);

/*
 * A clone of what is ahead names it: in `now` or `part`, in what waits, or in what is still to
 * be read, all of which is looked at once.
 */
bool ahead_names(struct ahead *a, const struct log_frame *now, const struct log_frame *part,
		 const struct frames *rest, uint32_t lane, uint32_t life);

#endif
