/*
 * A recording: the streams of a session, in a folder on disk.
 *
 * It is a row of segments (LOG_NAME), each a struct log_segment and frames behind one
 * another.  A frame is a header of one cell and its payload, as long as it is, up to whole
 * cells.  LOG_CELLS has a part of a lane as it stood in the ring, within one chunk and without
 * the turn at its end; so a place in a lane is the same in the recording, and what an event says
 * of another lane's place (abi/edge.h) holds.  The first frame of each segment is the LOG_HEAD:
 * what a follower of the program must be started with.  A recording of a session that ran already
 * begins with an image of its process (outside/foam), and lanes in the middle.  Segments may be
 * dropped from the beginning on, which later ones say: what is left can be looked at.
 *
 * What the recorder finds in one look at the lanes stands lane behind lane, whatever order it
 * had.  Looks are counted in rounds, each of which has come to all lanes: what was told, or
 * given, before an event of round n stands in no round behind n + 1.
 *
 * Frames may lie in a bale, several of them as one piece that zstd has compressed: LOG_BALE's
 * number is the first one's, `at` the bytes that they are.  The bales of a segment are one stream
 * of zstd, flushed behind each.
 *
 * What is on disk may be cut anywhere, or changed: each frame has its length and a CRC32C, and
 * the number that follows the one before.  A recording is true up to its last whole frame.
 *
 * Raise LOG_VERSION when a layout here changes.  The events are of EVENT_VERSION, and places
 * of RING_VERSION: a recording of others is refused, never guessed at.
 */
#ifndef MVE_ABI_LOG_H
#define MVE_ABI_LOG_H

#include <stdint.h>

#include "engine/abi/layout.h"
#include "engine/abi/ring.h"

#define LOG_MAGIC	0x00676f6c65766dull	/* "mvelog" */
#define LOG_VERSION	6
#define LOG_NAME	"%06u.log"
#define LOG_FRAME	0x6d617266u		/* "fram" */
#define LOG_BUILD_ID	20

/*
 * Limit (recordings): bytes of a program's command, environment and paths. Beyond: --record
 * is refused.
 */
#define LOG_WORDS_MAX	(4u << 20)

/* At the beginning of each file. */
struct log_segment {
	uint64_t magic;
	uint32_t version, event_version, ring_version;
	uint32_t number;	/* from 0 */
	uint64_t recording[2];	/* at random: the same in all segments of one */
	uint64_t first;		/* the number of its first frame */
	uint64_t time_ns;	/* of the day, when it began */
	uint32_t dropped;	/* so many of the first its recorder had dropped by then */
	uint32_t crc;		/* of all that is before */
};

enum log_kind {
	LOG_NONE,
	LOG_HEAD,	/* struct log_head, and its words */
	LOG_OPEN,	/* a lane's life begins, or was at `at` where the recording begins:
			   before any event that names it */
	LOG_CELLS,	/* of a lane, from cell `at` on */
	LOG_GIVES,	/* the lane has no more cells, but gives other than it did */
	LOG_CLOSED,	/* the lane's life is over: it has `at` cells */
	LOG_END,	/* the recording ended, and why: a text; `at` not 0: the session went on;
			   `life` not 0: who was recorded died there, the text says of what */
	LOG_BALE,	/* frames, compressed */
	LOG_KINDS
};

struct log_frame {
	uint32_t magic;
	uint32_t crc;		/* of what is behind it in the header, and of the payload */
	uint32_t size;		/* bytes of payload */
	uint32_t kind;		/* enum log_kind */
	uint64_t number;
	uint64_t time_ns;	/* of the day, when it was read from the ring */
	uint64_t at;
	uint32_t lane, life;
	int32_t pid, tid;	/* the lane's thread, in the leader */
	uint32_t round;		/* in which it was found */
	uint32_t giving;	/* what the lane gives behind these cells (struct lane), as far as
				   the round had it */
};

#define LOG_LIMITS	16

/* What a follower begins with, beside what the lanes say. */
struct log_head {
	struct layout layout;	/* the first program's, as the leader had it */
	uint64_t maps;		/* of struct conduct */
	uint64_t secret[2];	/* random bytes of programs are made of it */
	uint64_t limit[LOG_LIMITS][2];	/* rlimits: now, most */
	uint64_t blocked, ignored;	/* signals, as bits: 1 << (number - 1) */
	int64_t began;		/* seconds of the day */
	int32_t pid;		/* of the first process */
	uint32_t uid, gid, mask;	/* the last: umask(2) */
	uint32_t chunks, sections;	/* of the ring */
	uint32_t argc, envc;
	uint32_t words;		/* bytes of words behind this: path, working folder, release
				   of the kernel; argc and envc more */
	uint8_t build_id[LOG_BUILD_ID];	/* of the program's file; zeros: it has none */
	uint32_t build_id_size;
	uint32_t image;		/* the recording begins with this one (outside/foam), + 1; or 0 */
	uint32_t away;		/* of the chunks: they had no memory (--when-full spill) */
	uint32_t one_at_a_time;	/* of struct conduct */
	uint64_t pad1;
};

_Static_assert(sizeof(struct log_segment) == 64 && sizeof(struct log_frame) == CELL_SIZE, "cells");
_Static_assert(sizeof(struct log_head) % CELL_SIZE == 0, "words begin at a cell");

#define LOG_PAYLOAD_MAX	(sizeof(struct log_head) + LOG_WORDS_MAX)
#define LOG_BALE_MAX	(9u << 19)	/* bytes of the frames in a bale; and of the bale: */
#define LOG_BALED_MAX	(LOG_BALE_MAX + LOG_BALE_MAX / 128)

/* Bytes of a frame on disk. */
static inline uint64_t log_frame_size(uint32_t payload)
{
	return (uint64_t)CELL_SIZE * cells_behind(payload);
}

/*
 * How far a recording that still grows is whole: a page that three processes map.  Who writes the
 * folder says how far; who reads it, or ships it, says how far that is done, so that segments may
 * go and the disk is bounded.
 *
 * What is settled are whole frames, with all that is before them, when a recorder wrote them; when
 * they came over a network they may end anywhere.  The other's words are numbers, and no more:
 * what stands in the folder is checked as ever.
 */
struct log_tail {
	uint64_t settled;	/* tail_place(): before it all is written */
	uint64_t taken;		/* segments before this one are not needed: the reader's */
	uint64_t written;	/* bytes from the beginning on, up to there */
	uint64_t acked;		/* and how many of them are elsewhere: the shipper's */
	uint32_t over;		/* not 0: nothing is settled any more */
	uint32_t pad;
};

_Static_assert(sizeof(struct log_tail) == 40, "the same for all that map it");

/* A place in a recording: a byte of a segment. */
static inline uint64_t tail_place(uint32_t segment, uint32_t offset)
{
	return (uint64_t)segment << 32 | offset;
}

static inline uint32_t tail_segment(uint64_t place)
{
	return (uint32_t)(place >> 32);
}

static inline uint32_t tail_offset(uint64_t place)
{
	return (uint32_t)place;
}

#endif
