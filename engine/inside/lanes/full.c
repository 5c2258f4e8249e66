/*
 * A full ring.  A leader's thread waits for room for as long as the user has said, and then
 * gives up who is in its way by itself: the monitor need not live for that.
 *
 * It sleeps on words that those who make room count up: `room` of each follower, which has
 * given a chunk back, and of its own section, where another thread has dropped a follower.
 * That it waits it says in `full`; a follower looks there once for a chunk (a handshake).
 */
#include <asm/unistd.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/abi/waits.h"
#include "engine/core/away.h"
#include "engine/core/holds.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/lanes/full.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"

#define CHUNKS_TOUCHED	16

struct full {
	uint64_t waited;	/* only as long as it looked: it may have been stopped meanwhile */
	uint64_t still;		/* of that, since somebody has made room last, */
	uint64_t asked;		/* and until the monitor was asked why */
	uint32_t change, words;
	struct word word[VERSIONS];
};

/* --- who makes room ------------------------------------------------------------------ */

static void room_tell(const struct section *leaders)
{
	struct section *own = streams_section(&streams, streams.self);

	/* What was read or dropped is seen by who has not seen the count. */
	ANNOUNCE_BY(full, fetch_add, &own->room, 1);
	if (LOOK(full, &leaders->full))
		word_wake(&own->room);
}

/*
 * A page of the ring is made by who touches it first, which takes longer than to tell what
 * stands there: 1 us, and 12 where a machine's own host has to find it.  So a follower touches
 * them, before its leader comes there: up to so many chunks ahead.
 */
static void room_touch(const struct reader *r)
{
	static uint64_t touched;	/* in whose section << 32 | up to which chunk */
	const uint64_t whose = (uint64_t)r->cursor->source << 32, last = whose | (uint32_t)-1;
	const uint32_t chunks = chunks_in_memory(r->streams->conduct);
	uint64_t from = __atomic_load_n(&touched, __ATOMIC_RELAXED), to;
	uint32_t hint = __atomic_load_n(&r->from->chunk_hint, __ATOMIC_RELAXED);

	if (from < whose || from > last)
		from = whose;
	hint = hint < chunks ? hint : chunks;
	to = whose | (hint + CHUNKS_TOUCHED < chunks ? hint + CHUNKS_TOUCHED : chunks);
	if (from >= to)
		return;
	/* Other threads of ours do it, too: then it is there. */
	__atomic_store_n(&touched, to, __ATOMIC_RELAXED);
	from = from < (whose | hint) ? whose | hint : from;
	OWN3(__NR_madvise, (uint64_t)r->from + chunk_offset((uint32_t)from),
	     (to - from) * CHUNK_SIZE, MADV_POPULATE_READ);
}

void room_give(const struct reader *r)
{
	room_tell(r->from);
	room_touch(r);
}

static void followers_drop(struct writer *w, uint32_t followers)
{
	MUST(!(followers >> w->streams->self & 1));	/* itself it cannot leave behind */
	BOTH_BY(section_dropped, fetch_or, &w->section->dropped, followers);
	room_tell(w->section);
}

/* --- who waits for it ---------------------------------------------------------------- */

static struct full full_begin(struct writer *w)
{
	ANNOUNCE_BY(full, fetch_add, &w->section->full, 1);
	__atomic_fetch_add(&w->section->waits, 1, __ATOMIC_RELAXED);
	PUBLISH(thread_waits, &thread_self()->waits, WAITS_FULL);
	/* Part of an event may be told, which must be read before there is room. */
	lane_wake(w->section, w->index);
	/* Who looks for the next event at growing distances is to look now. */
	change_wake();
	word_wake(&w->section->full);	/* the spiller */
	return (struct full){ 0 };
}

static void full_end(struct writer *w)
{
	PUBLISH(thread_waits, &thread_self()->waits, 0);
	__atomic_fetch_sub(&w->section->full, 1, __ATOMIC_RELAXED);
}

static void word_see(struct full *f, const struct section *s)
{
	MUST(f->words < VERSIONS);
	f->word[f->words++] = (struct word){ &s->room, LOOK(full, &s->room) };
}

/* Before a look whether there is room. */
static void full_see(const struct writer *w, struct full *f)
{
	uint32_t bits = streams_followers(w->streams, w->section);

	f->change = change_now();
	f->words = 0;
	word_see(f, w->section);
	for (; bits; bits &= bits - 1)
		word_see(f, streams_section(w->streams, (uint32_t)__builtin_ctz(bits)));
}

static bool words_differ(const struct full *f)
{
	for (uint32_t i = 0; i < f->words; i++)
		if (__atomic_load_n(f->word[i].at, __ATOMIC_RELAXED) != f->word[i].seen)
			return true;
	return false;
}

/* No: they want a processor.  True also where nobody can say so. */
static bool followers_are_still(void)
{
	struct thread *t = thread_self();

	return !request_is_free(t) || request_ask(t, REQ_IMAGE, IMAGE_STILL, 0, 0);
}

/*
 * A follower may stand for what would be told next, while what its image holds is read already.
 * The second half of the wait is of its own time (image_still).
 */
static void full_still(struct writer *w, struct full *f, uint64_t ns)
{
	if (words_differ(f))
		f->still = f->asked = 0;
	else
		f->still += ns;
	if (f->still < f->asked + wait_limit(WAIT_image) / 2)
		return;
	f->asked = f->still;
	if (!images_may_go(w->streams, w->section, LANES) || !followers_are_still())
		return;
	if (images_let_go(w->streams, w->section, LANES))
		wait_note(WAIT_image, f->still, true);
	f->still = f->asked = 0;
}

/* True: it has been waited for long enough. */
static bool full_wait(struct writer *w, struct full *f)
{
	const struct conduct *c = w->streams->conduct;
	uint64_t since = clock_ns(CLOCK_MONOTONIC), ns;

	/* Of a lane of ours that gives a chunk back nobody hears: that is seen at the next look. */
	words_sleep(f->word, f->words, f->change, PAUSE_LAST_NS);
	ns = clock_ns(CLOCK_MONOTONIC) - since;
	__atomic_fetch_add(&w->section->waited_ns, ns, __ATOMIC_RELAXED);
	ns = ns < PAUSE_LAST_NS ? ns : PAUSE_LAST_NS;
	f->waited += ns;
	full_still(w, f, ns);
	return f->waited / 1000000 >= c->full_ms &&
	       (c->when_full == WHEN_FULL_DROP || !monitor_alive());
}

struct event *host_begin(struct writer *w, uint8_t kind, uint16_t call)
{
	struct event *e = writer_begin(w, kind, call);
	struct full f;

	if (e)
		return e;
	f = full_begin(w);
	while (full_see(w, &f), !(e = writer_begin(w, kind, call)))
		if (full_wait(w, &f))
			followers_drop(w, writer_held_by(w));
	full_end(w);
	return e;
}

void host_settle(struct writer *w)
{
	struct full f;

	if (writer_settle(w))
		return;
	f = full_begin(w);
	while (full_see(w, &f), !writer_settle(w))
		if (full_wait(w, &f))
			followers_drop(w, writer_held_by(w));
	full_end(w);
}

/* False: nobody is in the way any more, or nobody follows. */
static bool lane_wait(struct writer *w, struct full *f)
{
	bool over;
	uint32_t held;

	if (!streams_followers(w->streams, w->section))
		return false;
	over = full_wait(w, f);
	held = lanes_held_by(w->streams);
	if (over && held)
		followers_drop(w, held);
	return held;
}

/*
 * A lane for a child, told to whom its creator's is.  All may wait for a follower to read
 * them to the end; where they do not, there are as many threads as lanes, and this one will
 * not be followed: -1.
 */
int host_lane(struct writer *w)
{
	int lane = lane_open(w->streams, w->lane->readers);
	struct full f;
	bool more = true;

	if (lane >= 0 || !streams_followers(w->streams, w->section))
		return lane;
	f = full_begin(w);
	while (full_see(w, &f), (lane = lane_open(w->streams, w->lane->readers)) < 0 && more)
		more = lane_wait(w, &f);
	full_end(w);
	return lane;
}
