/*
 * The inside as a host of the core: its memory, and the wait for the rest of an event; lanes of
 * threads.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/record/care.h"

#define CHUNK_PAUSES	10	/* of the first, for a chunk, between two looks */

struct streams streams;

/* Rows that the monitor wrote: a prefix ends somewhere in its field. */
const struct path_map *host_path_maps(uint32_t *n)
{
	const struct brief *b = brief();
	uint32_t rows = b->maps;

	*n = rows < PATH_MAPS ? rows : PATH_MAPS;
	return b->map;
}

struct local_span local_span = { ~0ull, 0 };

static void span_widen(uint64_t from, uint64_t to)
{
	/* The latch of who adds is held; who runs there has been told of the mapping. */
	if (from < local_span.from)
		__atomic_store_n(&local_span.from, from, __ATOMIC_RELAXED);
	if (to > local_span.to)
		__atomic_store_n(&local_span.to, to, __ATOMIC_RELAXED);
}

/* Those that the monitor found when the program was begun. */
void locals_begin(void)
{
	MUST(boot.locals <= BOOT_LOCALS);
	for (uint32_t i = 0; i < boot.locals; i++)
		span_widen(boot.local[i].from, boot.local[i].to);
}

bool local_code_in(uint64_t at)
{
	/* What is counted is written. */
	uint32_t n = CONSUME(boot_locals, &boot.locals);

	for (uint32_t i = 0; i < n; i++)
		if (at > boot.local[i].from && at <= boot.local[i].to)
			return true;
	return false;
}

void local_add(uint64_t from, uint64_t len)
{
	if (boot.locals == BOOT_LOCALS)
		return;
	MUST(boot.locals < BOOT_LOCALS && from < from + len);
	boot.local[boot.locals] = (struct code_range_at){ from, from + len };
	/* Another thread reads the row after the count. */
	PUBLISH(boot_locals, &boot.locals, boot.locals + 1);
	span_widen(from, from + len);
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
	} else if (lane != CHUNK_NONE) {
		lane_attach(c, &streams);
		c->writer.lane->owner = c->tid;
		c->writer.lane->pid = c->pid;
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
	room_look(r);
	if (!ended)
		lane_rest(r, seen, (struct also){ 0 }, 0);
	return true;
}

/* Where nobody sees to the file any more it will not come, nor for one that was given up. */
bool host_chunk(const struct reader *r)
{
	const struct conduct *c = streams.conduct;
	uint32_t seen = change_now();

	if (!__atomic_load_n(&c->spills, __ATOMIC_RELAXED) || !monitor_alive() ||
	    CONSUME(section_dropped, &r->from->dropped) >> streams.self & 1)
		return false;
	/* Who sees to it sleeps there, too. */
	change_wake();
	change_wait(seen, CHUNK_PAUSES * PAUSE_FIRST_NS);
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
