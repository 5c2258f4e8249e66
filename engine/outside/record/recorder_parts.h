/* The recorder, as the monitor makes it and its process runs it. */
#ifndef MVE_OUTSIDE_RECORDER_PARTS_H
#define MVE_OUTSIDE_RECORDER_PARTS_H

#include "engine/core/ring.h"
#include "engine/outside/log/frames.h"
#include "engine/outside/log/head.h"
#include "engine/outside/record/recorder.h"
#include "engine/outside/log/writer.h"

#define US		(1u << ROW_LOG)
#define RECORDER_LEFT	"another version leads"	/* why it ended */

/* Where we stand in a lane: how far is written down, and how far that is under way. */
struct place {
	uint32_t life, chunk;
	uint64_t at, head;	/* `head`: as far as this look goes */
	uint64_t ended;		/* the look in which the life was read to its end; or 0 */
	bool closed;		/* no more will come */
	bool begins;		/* the recording begins within it, which has yet to be said */
	uint32_t giving, gave;	/* as seen with the head; as it is written down */
};

/* Cells of a batch: given back when they are written. */
struct reached {
	uint32_t lane, life, chunk;
	uint64_t at;
};

/* What one look found. */
struct gathered {
	struct batch batch;
	uint64_t look;		/* with which its round began */
	bool whole;		/* all lanes have come to where they were then */
	struct reached reached[BATCH_FRAMES];
};

/* How far a lane was told. */
struct told {
	uint64_t at;
	uint32_t life, pad;	/* 0: it had none */
};

/*
 * Where the leader stood when another image was taken: the monitor writes it while that stands,
 * and then its number, so who sees what was told later sees it.  A segment begins there.  Or it
 * stood for the end: what is told up to there needs nothing of what is told behind.
 */
#define CUT_ENDS	(~0u)

struct cut {
	uint32_t number;	/* counts them */
	uint32_t made;		/* the recorder's: it has come to this one */
	uint32_t image, pad;	/* CUT_ENDS: the recording ends there */
	struct told lane[LANES];
	char died[64];		/* of what the leader died, before another leads; "": it did not */
};

struct recorder {
	struct monitor *m;
	struct streams streams;
	struct section *own;
	const struct section *from;
	struct log_writer writer;
	struct head_bytes head;
	struct place place[LANES];
	uint32_t over[LANES];	/* lanes written down to their end, in the order of that, and */
	uint32_t over_first, over_count;	/* not given back */
	struct gathered turn[2];
	int socket;
	uint32_t leader;	/* the version that is read */
	uint32_t lane;		/* where the next look begins */
	uint64_t looks;		/* that began a round */
	uint64_t synced_ms;	/* when that was last asked for */
	uint64_t most;		/* bytes that may wait to be shipped; 0: nobody ships */
	uint32_t rounds;	/* whole ones */
	bool image;		/* it begins where one was taken */
	struct cut *cut;
	uint32_t cuts;		/* that have been made */
	bool cutting;		/* it reads up to the next one, and no further */
	bool full;		/* the batch is full: there may be more */
	char asked[FRAMES_WHY];	/* it is to end, and why; "": it is not, */
	struct told last[LANES];	/* and where the lanes were then */
	char why[FRAMES_WHY];	/* it ends; "": it goes on */
};

/* In its own process: until it is over. */
_Noreturn void recorder_run(struct recorder *r);

#endif
