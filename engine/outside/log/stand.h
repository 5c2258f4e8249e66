/*
 * mve replay --until: a replay stands where it is asked to, and goes on when it is asked to.
 * What is behind that place is not fed; so the thread whose event it is sleeps in its call, and
 * the others come to stand where they need what is not there.
 */
#ifndef MVE_OUTSIDE_LOG_STAND_H
#define MVE_OUTSIDE_LOG_STAND_H

#include <jansson.h>

#include "engine/outside/log/frames.h"

struct monitor;
struct replay;
struct section;

/* Shared by the monitor, which asks, and the feeder, which says what has come of it. */
struct until {
	uint64_t event, ns;	/* the event of this number, or the first at this time; or 0 */
	uint32_t asked;		/* how often; 0: it is to stand nowhere */
	uint32_t held;		/* of which of these nothing more is fed, */
	uint32_t stands;	/* and its thread has come there */
	uint32_t lane, life;
	uint64_t place, next;	/* in the lane; the number of the event that is not fed */
};

/* What the feeder keeps of it. */
struct stand {
	struct log_frame *part;	/* a frame that is handed out in two parts; or NULL */
	uint32_t cell;		/* of its payload, that come next */
	uint64_t events;	/* that were handed out */
	bool is_held;
};

/* As frames_next, up to where the replay is to stand; NULL, and is_held: it does. */
const struct log_frame *stand_next(struct stand *s, struct frames *f, struct until *u);
/* The follower's thread has come, or has not yet. */
void stand_look(const struct stand *s, struct until *u, const struct section *follower);

/* Somebody looks at a process of it with a debugger: the session waits for that. */
bool stand_is_watched(const struct until *u, const struct section *follower);

/* In the monitor: it is to stand elsewhere; false: it has passed that. */
bool stand_ask(struct monitor *m, uint64_t event, uint64_t ns);
json_t *stand_json(struct monitor *m);
/* Says it once when it stands. */
void stand_say(struct monitor *m);

/* Events of a frame of cells. */
uint64_t events_in(const struct log_frame *frame);

#endif
