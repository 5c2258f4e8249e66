/*
 * The receiving end of a recording that is shipped: messages become segments in a folder, which is
 * read while it grows (struct log_tail).
 */
#ifndef MVE_OUTSIDE_SHIP_INTAKE_H
#define MVE_OUTSIDE_SHIP_INTAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/abi/ship.h"

/*
 * Limit (shipping): bytes of a segment that is followed. Beyond: it is refused; mve ships segments
 * of 64 MiB.
 */
#define INTAKE_SEGMENT_MAX	(256u << 20)

enum taken {
	INTAKE_TAKEN,
	INTAKE_AGAIN,	/* it is there already */
	INTAKE_AHEAD,	/* what is before it has not come: it will come again behind that */
	INTAKE_OVER,	/* the recording is whole */
	INTAKE_WRONG	/* `why` */
};

struct intake {
	int folder, fd;
	struct log_tail *tail;
	uint64_t recording[2];
	uint64_t bytes, place;	/* where the next byte belongs */
	bool begun;
	char why[SHIP_WORDS];
};

void intake_begin(struct intake *in, int folder, struct log_tail *tail);
enum taken intake_take(struct intake *in, const void *bytes, size_t len);
void intake_end(struct intake *in);

#endif
