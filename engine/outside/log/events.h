/*
 * The events of a recording, each put together again from the parts that the ring had of it.
 */
#ifndef MVE_OUTSIDE_LOG_EVENTS_H
#define MVE_OUTSIDE_LOG_EVENTS_H

#include "engine/outside/log/frames.h"

struct told {
	const struct event *event;
	const uint8_t *payload;
	size_t len;
	uint64_t number;	/* from 1, as they stand in the recording */
	uint64_t time_ns;	/* when the recorder found it */
	uint64_t place;		/* of its first cell, in its lane */
	uint64_t behind;	/* and of the lane's next event; 0: none is known */
	uint32_t lane, life;
	int32_t pid, tid;
};

/*
 * Hands out what is left of the recording, lane by lane in order, and frames of no lane's cells as
 * they are; false: `f` says what is wrong.  Events of several lanes that the recorder found in one
 * look stand lane behind lane, whatever order they had: ordered.h.
 */
typedef void told_take(void *ctx, const struct told *t);
typedef void frame_take(void *ctx, const struct log_frame *frame);
bool events_each(struct frames *f, told_take *take, frame_take *other, void *ctx);

#endif
