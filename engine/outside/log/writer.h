/*
 * Writing a recording: frames into segments, by io_uring.
 */
#ifndef MVE_OUTSIDE_LOG_WRITER_H
#define MVE_OUTSIDE_LOG_WRITER_H

#include <liburing.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "engine/abi/log.h"
#include "engine/outside/bytes/bale.h"
#include "engine/outside/monitor/options.h"

#define BATCH_FRAMES	128

/* Frames that are written together: what they hold may not change until that is done. */
struct batch {
	struct log_frame frame[BATCH_FRAMES];
	struct iovec part[BATCH_FRAMES * 3];	/* header, payload, and what fills the cell */
	struct log_frame around;	/* of a bale, */
	uint8_t *bale;			/* which lies here; NULL: there never was one */
	unsigned frames, parts;
	uint64_t bytes, offset;
	uint64_t plain;		/* bytes before they were compressed */
	uint32_t segment;
	int error;		/* of its writing: negative */
	bool under_way;
};

/* A segment that is written. */
struct segment_kept {
	uint64_t bytes, ended_ns;
	uint32_t image;		/* with which it begins, + 1: it goes with it; or 0 */
};

/* What there is of a recording, for who wants to know; the writer's. */
struct log_written {
	uint64_t bytes;		/* on disk */
	uint64_t frames;	/* bytes of all frames, as they are */
	uint32_t segments, dropped;
};

struct log_writer {
	int folder, fd;
	uint64_t recording[2];
	uint32_t segment;
	uint64_t offset;	/* where the next batch goes */
	uint64_t before;	/* bytes of the segments before */
	uint64_t segment_bytes;	/* then comes another */
	uint64_t began_ns, segment_ns;	/* the recording, the segment that is written */
	struct record_bounds bounds;
	uint32_t image;		/* of the segment that is written, + 1; or 0 */
	uint32_t image_gone;	/* the last one whose segment was dropped, + 1; or 0 */
	struct segment_kept *kept;
	uint32_t kept_count, dropped;
	uint64_t kept_bytes;
	struct log_written *written;
	struct log_tail *tail;	/* who reads on while we write looks there; or NULL */
	uint64_t number;
	bool dirty;		/* something is written that may not be on the disk */
	struct baler *baler;	/* NULL: frames are written as they are; and while */
	bool hurry;		/* the ring is filling */
	struct io_uring ring;
	bool uring;		/* else each write is waited for */
};

/* In a folder of ours, which is made, and holds no recording; or a negative errno. */
int log_writer_open(struct log_writer *w, const char *path);
/* Nothing was written: the file goes again. */
void log_writer_drop(struct log_writer *w);
/* In the process that writes: what wakes and what is registered is its own.  Level 0: no zstd. */
void log_writer_begin(struct log_writer *w, int level, const struct record_bounds *bounds);
void batch_empty(struct batch *b);
/* It has what is written at once. */
bool batch_full(const struct log_writer *w, const struct batch *b);
/* Adds a frame; the payload is not copied.  There is room for BATCH_FRAMES. */
struct log_frame *batch_add(struct log_writer *w, struct batch *b, enum log_kind kind,
			    const void *payload, uint32_t size);
/* The frame's header is complete. */
void batch_seal(struct log_frame *frame, const void *payload);
/* Begins to write a batch; b->error stands when it is done. */
void batch_write(struct log_writer *w, struct batch *b);
void batch_wait(struct log_writer *w, struct batch *b);
/* It is written, and so are those before it: who reads on may read it. */
void batch_settle(struct log_writer *w, const struct batch *b);
/* Nothing of it is under way: it goes on in another segment.  0 or a negative errno. */
/* It may have no more: which option says so; or NULL. */
const char *log_writer_bound(const struct log_writer *w);
bool log_writer_full(const struct log_writer *w);
int log_writer_turn(struct log_writer *w);
/* What is written is on the disk, if it was not; 0 or a negative errno. */
int log_writer_sync(struct log_writer *w);
/* The same; the recording is closed. */
int log_writer_close(struct log_writer *w);

#endif
