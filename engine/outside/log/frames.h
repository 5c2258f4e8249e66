/*
 * Reading a recording: frame after frame, each whole or not at all.
 */
#ifndef MVE_OUTSIDE_LOG_FRAMES_H
#define MVE_OUTSIDE_LOG_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/abi/log.h"
#include "engine/outside/bytes/bale.h"

#define FRAMES_WHY	160

struct frames {
	int folder, fd;
	uint32_t segment;	/* that is read */
	uint32_t dropped;	/* so many before the first are not read; */
	uint32_t missing_to;	/* those that are not there, or 0: some are not asked for; */
	uint32_t gone;		/* and so many its recorder had dropped, as far as is read */
	uint64_t begins, began_ns;	/* the first one's number, and when it was begun */
	bool begun;		/* its head has been handed out */
	uint64_t recording[2];
	uint64_t number;	/* of the next frame; of the segment's first */
	uint64_t first;
	uint64_t offset;	/* in the file, of what `bytes` begins with */
	uint8_t *bytes;
	size_t have, at, room;
	struct unbaler *unbaler;
	const uint8_t *bale;	/* what is in the bale behind which we stand: */
	size_t bale_have, bale_at;
	bool over;		/* nothing more comes */
	bool torn;		/* behind the last whole frame there is something else */
	bool ended;		/* the last is its recorder's word that it ends there */
	uint64_t total;		/* bytes of whole frames, and of what segments begin with */
	const struct log_tail *tail;	/* it grows as it is read; or NULL */
	uint64_t most;		/* of this segment no more may be read yet */
	char why[FRAMES_WHY];	/* it is torn, or could not be opened */
};

/*
 * 0, or an exit code: `why` says what is wrong with the folder, or its first segment, which is the
 * oldest that is there.
 */
int frames_open(struct frames *f, const char *path);
/* From this segment on, as if those before had been dropped; EXIT_USE: it is not there. */
int frames_open_at(struct frames *f, const char *path, uint32_t segment);
/* Of a folder that still grows: its first segment has begun.  The folder becomes the reader's. */
int frames_open_tail(struct frames *f, int folder, const struct log_tail *tail);
/* Why one is not whole that is not torn, and has not `ended`. */
extern const char frames_endless[];
/* Segments of its beginning that its recorder has not dropped, and that are not there. */
uint32_t frames_lost(const struct frames *f);
/* Read to its end: why it is not whole; NULL: it is. */
const char *frames_wrong(const struct frames *f);
/*
 * The next frame, with its payload behind it, until the one after it is asked for; NULL: there
 * is no more that is whole; and not `over`: there is none yet.
 */
const struct log_frame *frames_next(struct frames *f);
/* Another reader at the same place; it looks through the segment to find it. */
void frames_copy(const struct frames *f, struct frames *copy);
void frames_close(struct frames *f);

static inline const void *frame_payload(const struct log_frame *frame)
{
	return frame + 1;
}

/* What its header and payload come to. */
uint32_t frame_crc(const struct log_frame *frame, const void *payload);
uint32_t segment_crc(const struct log_segment *s);

/*
 * The head and its words, as a frame has them; false: it makes no sense.  Words point into
 * the frame; argv and env are the caller's to free.
 */
struct program {
	struct log_head head;
	const char *path, *folder, *kernel;
	char **argv, **env;
};

bool program_read(const struct log_frame *frame, struct program *p);

#endif
