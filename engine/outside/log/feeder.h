/* mve replay: a recording takes the leader's place. */
#ifndef MVE_OUTSIDE_LOG_FEEDER_H
#define MVE_OUTSIDE_LOG_FEEDER_H

#include "engine/outside/foam/foam.h"
#include "engine/outside/log/frames.h"
#include "engine/outside/log/stand.h"
#include "engine/outside/monitor/monitor.h"

/* What the feeder has come to; it writes there, we read, but for `rests`. */
struct fed {
	uint64_t frames, calls;
	uint64_t open;		/* cells of events that the cut may have left without their ends */
	uint32_t first_ends;	/* 1 + the lane whose last event ends the first process; or 0 */
	uint32_t whole;		/* it is at the end of what is whole */
	uint32_t read;		/* all of it is read, if not fed */
	uint32_t looks;		/* that found nothing to feed */
	uint32_t ended;		/* the recorder has said that it ends there; */
	uint32_t early;		/* and that the session went on */
	uint32_t lost;		/* of its beginning segments are missing: `why` */
	uint32_t torn;		/* there is something behind it, or it makes no sense: */
	uint32_t rests;		/* the monitor's: nothing moves any more (rest.h) */
	char why[FRAMES_WHY];
	char died[FRAMES_WHY];	/* who was recorded died at its end, and of what; or "" */
	struct until until;
};

/* How much was not read when the follower's end came: nobody counts it afterwards. */
struct replay_left {
	bool is;
	uint64_t cells;
	bool first_over;
};

struct replay {
	const char *path;
	struct frames frames;
	struct log_tail *tail;	/* of one that grows; or NULL */
	struct program program;
	struct foam *foam;	/* the image with which it begins; or NULL */
	struct fed *fed;
	struct replay_left left;
	uint64_t from_ns;	/* it begins at the last image before; 0: as early as can be */
	uint64_t before;	/* events of segments that are not fed for that */
	uint64_t until_event, until_ns;	/* where it is to stand first; or 0 */
};

#define REPLAY_COMES	-1

/* Opens the recording; 0, or an exit code behind a message. */
int replay_open(struct replay *r, const char *path);
/* One that still grows; `path` is for people.  REPLAY_COMES: its head is not there yet. */
int replay_open_tail(struct replay *r, const char *path, int folder, struct log_tail *tail);
/* 0, or an exit code behind a message: it can only be looked at. */
int replay_begins(struct replay *r);
/* It can: from this segment on; false, and `why`. */
bool replay_can(const char *path, uint32_t *segment, char why[FOAM_WHY]);
/* The same of another build than the recorded one. */
int replay_builds(const struct replay *r);
/* Chunks of a ring in which it cannot get stuck. */
uint32_t replay_chunks(const struct replay *r);
uint32_t replay_away(const struct replay *r);
/* Bytes that the leader had mapped for its streams: so much has the follower, too. */
uint64_t replay_span(const struct replay *r);
/* Begins the process that fills the leader's lanes; its pid, or a negative errno. */
pid_t feeder_begin(struct monitor *m, struct replay *r);

#endif
