/*
 * A recording on its way to another machine (docs/shipping.md): bytes of its segments, as they
 * stand on disk, in messages of a subject.  A message says where its bytes belong; who receives
 * them takes those that come next, whatever came twice, or in the wrong order.
 *
 * Raise SHIP_VERSION when a layout here changes.  What is in the segments has versions of its own,
 * which stand in each message, too: a message of others is refused, never guessed at.
 */
#ifndef MVE_ABI_SHIP_H
#define MVE_ABI_SHIP_H

#include <stddef.h>
#include <stdint.h>

#include "engine/abi/log.h"

#define SHIP_MAGIC	0x00706968736d76ull	/* "vmship" */
#define SHIP_VERSION	1
#define SHIP_PAYLOAD	(256u << 10)	/* bytes of a segment in one message, at most */
#define SHIP_SUBJECT_MAX 128
#define SHIP_WORDS	200		/* that mve-ship says at a time, behind its state */

#define SHIP_OVER	1u	/* the recording has no more bytes than are before this */

struct ship_message {
	uint64_t magic;
	uint32_t version, log_version, event_version, ring_version;
	uint64_t recording[2];
	uint64_t bytes;		/* of the recording, before these */
	uint64_t place;		/* tail_place() of the first */
	uint64_t began;		/* the stream's number of the recording's first message; 0: this
				   is it */
	uint32_t flags, size;	/* `size` bytes of a segment are behind this */
	uint32_t pad;
	uint32_t crc;		/* of all before, and of the bytes */
};

_Static_assert(sizeof(struct ship_message) == 80, "no holes");
_Static_assert(offsetof(struct ship_message, crc) == 76, "the checksum is the last");

/* What mve-ship says of itself: a byte, and words for people. */
enum ship_state { SHIP_TRIES, SHIP_CONNECTED, SHIP_DONE, SHIP_REFUSED, SHIP_STATES };

/* How far all is acknowledged: a sender begins anew there. */
struct ship_mark {
	uint64_t bytes, place;
};

/* What mve-ship and its monitor share; mve-ship writes all but `drops` and parts of `tail`. */
struct ship_page {
	struct log_tail tail;
	struct ship_mark mark[2];
	uint64_t marked;	/* of the two the one that is whole, by its last bit */
	uint64_t began;
	uint64_t messages, again;	/* that were sent or taken; of them: twice */
	uint32_t connects;
	uint32_t drops;		/* segments that were acknowledged are removed */
};

_Static_assert(sizeof(struct ship_page) == 112, "one build's, but two programs'");

/* The descriptors that mve-ship is started with. */
enum ship_fd { SHIP_FD_PAGE = 3, SHIP_FD_FOLDER, SHIP_FD_SOCKET, SHIP_FD_ENDS };

#endif
