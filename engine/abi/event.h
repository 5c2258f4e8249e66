/*
 * The event: what the leader tells of one call, so that a follower can be
 * answered and compared.  A header of one 64-byte cell, then the payload, then
 * the rest of the last cell.  The ring in shared memory, a log on disk and the
 * bytes on a network are the same bytes.
 *
 * The payload is written and read by one walk over the call's row in the table
 * (engine/core/walk.h): sections in the order of the arguments, each a u32 with
 * its length and then its bytes.  A call's begins where its values end, in the
 * header: most are short, and take no other cell.  What does not fit into the rest of a chunk
 * goes on in EVENT_MORE events: the payload is one stream of bytes across them.
 *
 * Raise EVENT_VERSION when the header changes, when a kind changes its meaning
 * or when a walk writes other sections for a call: a log of another version is
 * refused, never guessed at.
 */
#ifndef MVE_ABI_EVENT_H
#define MVE_ABI_EVENT_H

#include <stdint.h>

#define EVENT_VERSION	16

#define CELL_SIZE	64
#define ORDER_BITS	48
#define ORDER_MASK	((1ull << ORDER_BITS) - 1)
#define EVENT_ARGS	5	/* values in the header; a sixth is a section */

enum event_kind {
	EVENT_NONE,
	EVENT_CALL,	/* a call and its result */
	EVENT_MORE,	/* the payload of the one before goes on */
	EVENT_TURN,	/* the lane goes on in chunk arg[0] */
	EVENT_SIGNAL,	/* the program's handler runs here; payload: siginfo */
	EVENT_EXEC,	/* how an execve ended, or will: enum exec_outcome or -errno; payload
			   of EXEC_HELD: struct layout */
	EVENT_LOCK,	/* a lock was taken: bucket arg[0], its turn arg[1] */
	EVENT_SEAM,	/* a request begins: the arg[0]-th of its thread */
	EVENT_FILE,	/* a descriptor, arg[0], was mapped, or opened by the loader, or where it
			   stands, as `call` says (mmap, open, lseek); see enum file_kind */
	EVENT_MOVED,	/* the process has other rights now: its stream goes on in lane arg[1]
			   of realm arg[0]; the last of its lane */
	EVENT_BACK,	/* the request has failed, by the signal arg[0], and is taken back */
	EVENT_EDGE,	/* nothing but an edge: of a call that would have given, and was not made */
	EVENT_BATON,	/* the thread works again, with the turn arg[1] of arg[0]; arg[2]: it was
			   another's still; result: of the call that it is behind.  arg[1] 0:
			   no turn, only the result of a call that wakes others */
	EVENT_KINDS
};

/*
 * What stands behind a mapped descriptor: arg[4] of an EVENT_FILE, whose result is 0 or
 * what mmap answered.  arg[1], arg[2] say which file it is.  Of FILE_TOLD arg[3] is the
 * size; payload: a struct file_extent and its bytes for each stretch that is not zeros,
 * and one of no bytes.
 */
enum file_kind {
	FILE_PATH,	/* each version maps it by its path */
	FILE_TOLD,	/* it is written, or it has no path */
	FILE_LARGE,	/* the same, but too large to be told */
	FILE_ZERO,	/* /dev/zero: memory without a file */
	FILE_OTHER,	/* memory that the kernel writes, or a device */
	FILE_SAME,	/* not mapped itself: it leads to a file that was told */
	FILE_AT,	/* the next write to it goes where the event's result says */
};

struct file_extent { uint64_t at, len; };

enum exec_outcome {
	EXEC_HELD, EXEC_UNHELD,
	EXEC_MOVES,	/* the program has other rights: it begins in a lane of its realm, and
			   this one is closed; or it fails, and another EVENT_EXEC says so */
};

enum event_flags {
	EVENT_SIGNAL_NEXT = 1,	/* an EVENT_SIGNAL follows before the program goes on */
	EVENT_CUT = 2,		/* memory could not be read: zeros stand for it */
	EVENT_LOOK = 4,		/* a query or a clock, by the row that its arguments chose */
	EVENT_PASSED = 8,	/* an accept whose connection followers do not hear of */
	EVENT_AFTER = 16,	/* another thread's doing comes first: arg[EDGE_ARG] says which */
	EVENT_TICK = 32,	/* since the last event of the thread one has read a clock whose
				   second is another: see order_tick */
	EVENT_CLOCK = 64,	/* with EVENT_TICK: this one has */
	EVENT_MEANT = 128,	/* a signal: its version means it, and it is no crash */
	EVENT_LET = 128,	/* not of a signal: its thread may have found either second before
				   this, for it was not waited for (with EVENT_TICK), or did not
				   wait till the new one was written down */
};

struct event {
	union {
		struct {
			union {
				struct {
					uint16_t size;	/* bytes of payload in this event */
					uint8_t early;	/* they begin so many values before
							   the header's end */
					uint8_t unused;
				};
				uint32_t extent;	/* all of them */
			};
			uint16_t call;	/* number in the table */
			uint8_t kind;
			uint8_t flags;
		};
		uint64_t head;		/* all of them: EVENT_HEAD */
	};
	union {
		uint64_t seq;	/* order across the lanes of one process: ORDER_BITS
				   of it; above them how often it has forked */
		struct {
			uint16_t number[3], forks;
		};
	};
	int64_t result;
	uint64_t arg[EVENT_ARGS];	/* the values among the arguments, in order */
};

/* Of one without payload. */
#define EVENT_HEAD(kind, call, flags) \
	(((uint64_t)(flags) << 24 | (uint64_t)(kind) << 16 | (call)) << 32)

_Static_assert(sizeof(struct event) == CELL_SIZE, "an event's header is a cell");
_Static_assert(EVENT_ARGS < 8, "whatever stands in `early`: see extent_early()");
_Static_assert(ORDER_BITS == 8 * sizeof(((struct event *)0)->number), "forks are above it");

/* A clone's values: its child's lane and the life of it, whether the child gets a copy. */
enum { CLONE_LANE_ARG, CLONE_LIFE_ARG, CLONE_COPIES_ARG };
#define EDGE_ARG	4	/* abi/edge.h; of events with less than five values */

/* Only looked at the world: a version may leave it out. */
static inline int event_looks(const struct event *e)
{
	return e->kind == EVENT_CALL && e->flags & EVENT_LOOK;
}

/* Nothing has to happen at the event but what its kind says. */
static inline int event_is_plain(const struct event *e)
{
	return !(e->flags & ~(EVENT_LOOK | EVENT_TICK | EVENT_CLOCK | EVENT_LET));
}

/* No call of the program's answers it: it is in nobody's way. */
static inline int event_aside(const struct event *e)
{
	return e->kind == EVENT_LOCK || e->kind == EVENT_SEAM || e->kind == EVENT_FILE ||
	       e->kind == EVENT_EDGE;
}

/* Cells of a header and so many bytes behind it. */
static inline uint32_t cells_behind(uint32_t bytes)
{
	return 1 + (bytes + CELL_SIZE - 1) / CELL_SIZE;
}

/*
 * An event's `extent`, read once, for another process may write it.  Whatever it is, its payload
 * begins in the header or right behind it.
 */
static inline uint32_t extent_of(const struct event *e)
{
	return __atomic_load_n(&e->extent, __ATOMIC_RELAXED);
}

static inline uint32_t extent_size(uint32_t extent)
{
	return extent & UINT16_MAX;
}

/* Bytes of the header that are the payload's. */
static inline uint32_t extent_early(uint32_t extent)
{
	return (extent >> 16) % 8 * sizeof(uint64_t);
}

static inline uint32_t extent_cells(uint32_t extent)
{
	return (2 * CELL_SIZE - 1 + extent_size(extent) - extent_early(extent)) / CELL_SIZE;
}

static inline const uint8_t *extent_payload(const struct event *e, uint32_t extent)
{
	return (const uint8_t *)(e + 1) - extent_early(extent);
}

#endif
