/*
 * The inside as a host of the core: its memory, and its waiting.
 *
 * A leader waits when its ring is full, for as long as the user has said, and
 * then gives the follower up by itself: the monitor need not live for that.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/record/care.h"

#define FULL_LOOK_NS	100000
#define SECOND_NS	1000000000ull

struct streams streams;

/* Rows that the monitor wrote: a prefix ends somewhere in its field. */
const struct path_map *host_path_maps(uint32_t *n)
{
	const struct brief *b = brief();
	uint32_t rows = b->maps;

	*n = rows < PATH_MAPS ? rows : PATH_MAPS;
	return b->map;
}

void local_add(uint64_t from, uint64_t len)
{
	if (boot.locals == BOOT_LOCALS)
		return;
	MUST(boot.locals < BOOT_LOCALS && from < from + len);
	boot.local[boot.locals] = (struct code_range_at){ from, from + len };
	/* Another thread reads the row after the count. */
	PUBLISH(boot_locals, &boot.locals, boot.locals + 1);
}

/* --- a full ring ----------------------------------------------------------------- */

static void followers_drop(struct writer *w, uint32_t followers)
{
	MUST(!(followers >> w->streams->self & 1));	/* itself it cannot leave behind */
	BOTH_BY(section_dropped, fetch_or, &w->section->dropped, followers);
}

static void full_begin(struct writer *w)
{
	__atomic_fetch_add(&w->section->waits, 1, __ATOMIC_RELAXED);
	/* Part of an event may be told, which must be read before there is room. */
	lane_wake(w->section, w->index);
}

/* True: it has been waited for long enough. */
static bool full_wait(struct writer *w, uint64_t *waited)
{
	const struct conduct *c = w->streams->conduct;
	uint64_t since = clock_ns(CLOCK_MONOTONIC);

	change_wait(change_now(), FULL_LOOK_NS);
	*waited += FULL_LOOK_NS;
	__atomic_fetch_add(&w->section->waited_ns, clock_ns(CLOCK_MONOTONIC) - since,
			   __ATOMIC_RELAXED);
	return *waited / 1000000 >= c->full_ms &&
	       (c->when_full == WHEN_FULL_DROP || !monitor_alive());
}

struct event *host_begin(struct writer *w, uint8_t kind, uint16_t call)
{
	struct event *e = writer_begin(w, kind, call);
	uint64_t waited = 0;

	if (e)
		return e;
	for (full_begin(w); !(e = writer_begin(w, kind, call));)
		if (full_wait(w, &waited))
			followers_drop(w, writer_held_by(w));
	return e;
}

void host_settle(struct writer *w)
{
	uint64_t waited = 0;

	if (writer_settle(w))
		return;
	for (full_begin(w); !writer_settle(w);)
		if (full_wait(w, &waited))
			followers_drop(w, writer_held_by(w));
}

/*
 * A lane for a child, told to whom its creator's is.  All may wait for a follower to read
 * them to the end; where they do not, there are as many threads as lanes, and this one will
 * not be followed: -1.
 */
int host_lane(struct writer *w)
{
	uint64_t waited = 0;
	int lane = lane_open(w->streams, w->lane->readers);

	if (lane < 0 && streams_followers(w->streams, w->section))
		full_begin(w);
	while (lane < 0 && streams_followers(w->streams, w->section)) {
		bool over = full_wait(w, &waited);
		uint32_t held = lanes_held_by(w->streams);

		lane = lane_open(w->streams, w->lane->readers);
		if (lane < 0 && !held)
			break;
		if (lane < 0 && over)
			followers_drop(w, held);
	}
	return lane;
}

/* --- lanes of threads ----------------------------------------------------------------- */

void stream_describe(struct thread *t)
{
	t->slot->vpid = t->vpid;
	t->slot->vtid = t->vtid;
	t->slot->lane = t->has_lane ? lane_known(t) + 1 : 0;
}

/* A child's first steps; its parent has opened the lane. */
void stream_child(struct thread *c, uint32_t lane)
{
	MUST(lane == CHUNK_NONE || lane < LANES);
	c->lane = lane;
	if (lane == CHUNK_NONE)	/* a sanitizer's own: nobody's twin */
		c->following = 0;
	if (c->following) {
		struct cursor *cur;

		reader_attach(&c->reader, &streams, lane);
		cur = c->reader.cursor;
		cur->owner = c->tid;
		cur->pid = c->pid;
	} else {
		c->vtid = c->tid;
		c->vpid = c->pid;
		if (lane != CHUNK_NONE) {
			lane_attach(c, &streams);
			c->writer.lane->owner = c->tid;
			c->writer.lane->pid = c->pid;
		}
	}
	/* Other threads of a follower look at what it reads (order.c). */
	PUBLISH(thread_has_lane, &c->has_lane, lane != CHUNK_NONE);
	stream_describe(c);
}

/* The core waits for the rest of an event: the leader is still at it. */
bool host_more(struct reader *r)
{
	const struct conduct *c = streams.conduct;
	uint32_t seen = change_now();
	/* What was published before the end is seen by the next look. */
	bool ended = CONSUME(conduct_bits, &c->ended) >> r->cursor->source & 1;

	if (r->broken || r->complete || (ended && r->waited_out))
		return false;
	r->waited_out = ended;
	/* The leader may wait for the room that the read part takes. */
	reader_release(r);
	if (!ended)
		lane_rest(r, seen, 0);
	return true;
}

bool follow_payload(struct reader *r, void *to, size_t size)
{
	const uint8_t *at;
	size_t done = 0, n;

	for (; done < size; done += n) {
		n = reader_piece(r, size - done, &at);
		if (!n && !host_more(r))
			return false;
		bytes_copy((uint8_t *)to + done, at, n);
	}
	return true;
}
