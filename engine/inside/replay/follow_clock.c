/*
 * What time a follower is told that did not find its very call among the leader's
 * (follow.c).  What the leader read of the same clock by another call, if it did so
 * before its next deed: dates and time-outs come of it, and dates are compared.  Else
 * the clock goes with what the stream tells of the others, and a little on each time;
 * one that the stream has not told begins with the kernel's reading.
 *
 * A coarse clock is its finer sister.  A process's threads share what is known,
 * without an order: it is some moment between what the one and the other was told.
 */
#include <asm/unistd.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/replay/follow_clock.h"
#include "engine/inside/rules/apart_meet.h"

#define CLOCKS		12

static struct reading {
	int64_t ns;		/* what the program was told last */
	int64_t offset;		/* from stream_ns */
	bool tied;		/* the offset is known */
} last[CLOCKS];

_Static_assert(CLOCK_TAI < CLOCKS && CLOCK_BOOTTIME_ALARM < CLOCKS, "each clock has a row");

static int64_t stream_ns;	/* how late it is, as far as the stream has told */
static bool stream_ticks;

/* The clock that a call reads; CLOCKS: none. */
static uint64_t clock_of(long nr, uint64_t first)
{
	uint64_t clock = nr == __NR_clock_gettime ? (uint32_t)first : CLOCK_REALTIME;

	if (!call_has(call_find(nr), TRAIT_CLOCK))
		return CLOCKS;
	if (clock == CLOCK_REALTIME_COARSE)
		return CLOCK_REALTIME;
	if (clock == CLOCK_MONOTONIC_COARSE)
		return CLOCK_MONOTONIC;
	return clock < CLOCKS ? clock : CLOCKS;
}

/* What it shows goes by itself; others tell of what somebody did. */
static bool clock_ticks(uint64_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_MONOTONIC_RAW;
}

static void stream_tick(struct reading *r)
{
	int64_t now = r->ns - r->offset;

	if (!r->tied || now < stream_ns - SECOND_NS)	/* the clock was set */
		r->offset = r->ns - stream_ns;
	else if (now > stream_ns)
		stream_ns = now;
	r->tied = stream_ticks = true;
}

/* The leader's call read so much: a timespec, a timeval, or seconds. */
static void clock_told(uint64_t clock, long nr, const int64_t value[2])
{
	struct reading *r = &last[clock];

	MUST(clock < CLOCKS);

	if (nr == __NR_clock_gettime)
		r->ns = value[0] * SECOND_NS + value[1];
	else if (nr == __NR_gettimeofday)
		r->ns = value[0] * SECOND_NS + value[1] * 1000;
	else if (r->ns / SECOND_NS < value[0])	/* time() is behind the others */
		r->ns = value[0] * SECOND_NS;
	else
		return;
	if (clock_ticks(clock))
		stream_tick(r);
}

void clock_note(const struct walk *w, long nr)
{
	uint64_t clock = clock_of(nr, w->args[0]), at = w->args[nr == __NR_clock_gettime];
	int64_t value[2] = { w->result, 0 };

	if (clock < CLOCKS && (nr == __NR_time || !target_in(value, at, sizeof(value))))
		clock_told(clock, nr, value);
}

/* The event's own words: the section that begins its payload. */
static bool event_value(const struct event *e, struct reader r, int64_t value[2])
{
	struct { uint32_t len; uint8_t value[16]; } section = { 0 };
	uint8_t *out = (uint8_t *)&section;
	const uint8_t *at;
	size_t n;

	value[0] = e->result;
	if (e->call == __NR_time)
		return true;
	r.ahead = true;
	for (size_t done = 0; done < sizeof(section); done += n) {
		n = reader_piece(&r, sizeof(section) - done, &at);
		if (!n)
			return false;
		bytes_copy(out + done, at, n);
	}
	bytes_copy(value, section.value, sizeof(section.value));
	return section.len == sizeof(section.value);
}

static bool is_coarse(long nr, uint64_t first)
{
	return nr == __NR_clock_gettime && ((uint32_t)first == CLOCK_MONOTONIC_COARSE ||
					    (uint32_t)first == CLOCK_REALTIME_COARSE);
}

/*
 * Looks at what the leader read before it did more than look; true: of this clock, too.
 * Its reading is then taken for this call's, unless it is the sister's: an allocator's
 * look at a coarse clock must not take away what the program is about to ask for.
 */
static bool clock_ahead(struct thread *t, long nr, uint64_t clock)
{
	struct reader r = t->reader;
	const struct event *e = reader_peek(&r);

	r.ahead = true;
	for (unsigned i = 0; e && i < AHEAD_EVENTS && (event_passable(e) || apart_passes(t, e));
	     i++, e = reader_next(&r)) {
		uint64_t other = event_looks(e) ? clock_of(e->call, e->arg[0]) : CLOCKS;
		int64_t value[2];

		if (t->ahead >> i & 1 || other == CLOCKS || e->result < 0 ||
		    !event_value(e, r, value))
			continue;
		clock_told(other, e->call, value);
		if (other != clock)
			continue;
		if (is_coarse(nr, t->frame.rdi) == is_coarse(e->call, e->arg[0]))
			t->ahead |= 1ull << i;
		return true;
	}
	return false;
}

/* How the clock stands to the stream's time. */
static bool clock_tie(uint64_t clock)
{
	struct __kernel_timespec now;

	if (last[clock].tied)
		return true;
	if (OWN2(__NR_clock_gettime, clock, &now))
		return false;
	last[clock].offset = now.tv_sec * SECOND_NS + now.tv_nsec - stream_ns;
	return last[clock].tied = true;
}

/* Goes on; false: nothing is known to make a reading of. */
static bool clock_go_on(uint64_t clock)
{
	struct reading *r = &last[clock];
	int64_t now = r->ns;

	MUST(clock < CLOCKS);

	if (clock_ticks(clock)) {
		if (!stream_ticks || !clock_tie(clock))
			return false;
		now = stream_ns + r->offset;
	} else if (!r->ns) {
		return false;
	}
	r->ns = now > r->ns ? now : r->ns + CLOCK_STEP_NS;
	return true;
}

bool clock_own(struct thread *t, long nr, long *result)
{
	const struct frame *f = &t->frame;
	uint64_t clock = clock_of(nr, f->rdi), to = nr == __NR_clock_gettime ? f->rsi : f->rdi;
	int64_t value[2];

	if (clock == CLOCKS || (nr == __NR_gettimeofday && f->rsi) ||
	    (!clock_ahead(t, nr, clock) && !clock_go_on(clock)))
		return false;
	value[0] = last[clock].ns / SECOND_NS;
	value[1] = last[clock].ns % SECOND_NS / (nr == __NR_gettimeofday ? 1000 : 1);
	*result = nr == __NR_time ? value[0] : 0;
	return (nr == __NR_time && !to) ||
	       !target_out(to, value, nr == __NR_time ? sizeof(value[0]) : sizeof(value));
}
