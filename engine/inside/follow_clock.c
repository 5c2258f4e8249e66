/*
 * Clocks that a follower reads more often than its leader did, or that the leader
 * does not read: they go with what the stream tells of the others, and a little on
 * each time.  What ticks is told by the clocks that show the time; one that the
 * stream has not told begins with the kernel's reading.
 *
 * A process's threads share what is known, without an order: it is some moment
 * between what the one and the other was told.
 */
#include <asm/unistd.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/inside/stream.h"

#define CLOCKS		12
#define SOFT_STEP_NS	1000
#define SECOND_NS	1000000000ll

static struct soft {
	int64_t ns;		/* what the program was told last */
	int64_t offset;		/* from stream_ns */
	bool tied;		/* the offset is known */
} soft[CLOCKS];

static int64_t stream_ns;	/* how late it is, as far as the stream has told */
static bool stream_ticks;

static bool clock_ticks(uint64_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_MONOTONIC_RAW;
}

/* Whose time it shows. */
static uint64_t clock_base(uint64_t clock)
{
	return clock == CLOCK_REALTIME_COARSE ? CLOCK_REALTIME
	     : clock == CLOCK_MONOTONIC_COARSE ? CLOCK_MONOTONIC : clock;
}

static void stream_tick(struct soft *s, int64_t ns)
{
	int64_t now = ns - s->offset;

	if (!s->tied || now < stream_ns - SECOND_NS)	/* the clock was set */
		s->offset = ns - stream_ns;
	else if (now > stream_ns)
		stream_ns = now;
	s->tied = stream_ticks = true;
}

void soft_note(const struct walk *w, long nr)
{
	bool day = nr == __NR_gettimeofday;
	uint64_t clock = day ? 0 : (uint32_t)w->args[0], at = w->args[!day];
	int64_t value[2];

	if (clock >= CLOCKS || !at || target_in(value, at, sizeof(value)))
		return;
	soft[clock].ns = value[0] * SECOND_NS + value[1] * (day ? 1000 : 1);
	if (clock_ticks(clock))
		stream_tick(&soft[clock], soft[clock].ns);
}

static bool kernel_clock(uint64_t clock, int64_t *ns)
{
	struct __kernel_timespec now;

	if (OWN2(__NR_clock_gettime, clock, &now))
		return false;
	*ns = now.tv_sec * SECOND_NS + now.tv_nsec;
	return true;
}

/* How the clock stands to the stream's time. */
static bool clock_tie(uint64_t clock)
{
	int64_t kernels;

	if (!clock_ticks(clock) || soft[clock].tied)
		return true;
	if (!kernel_clock(clock, &kernels))
		return false;
	soft[clock].offset = kernels - stream_ns;
	return soft[clock].tied = true;
}

/* The reading that the program gets; false: nothing is known to make it of. */
static bool soft_read(uint64_t clock, int64_t *ns)
{
	uint64_t base = clock_base(clock);
	struct soft *s = &soft[clock % CLOCKS];

	if (clock >= CLOCKS || !(clock_ticks(base) ? stream_ticks : s->ns) || !clock_tie(base))
		return false;
	*ns = clock_ticks(base) ? stream_ns + soft[base].offset : s->ns;
	if (*ns <= s->ns)
		*ns = s->ns + SOFT_STEP_NS;
	s->ns = *ns;
	return true;
}

bool soft_clock(struct thread *t, long nr, long *result)
{
	bool day = nr == __NR_gettimeofday;
	uint64_t clock = nr == __NR_clock_gettime ? (uint32_t)t->frame.rdi : CLOCK_REALTIME;
	uint64_t at = nr == __NR_clock_gettime ? t->frame.rsi : t->frame.rdi;
	int64_t ns, value[2];

	if ((day && t->frame.rsi) || (nr == __NR_time && at) || !soft_read(clock, &ns))
		return false;
	value[0] = ns / SECOND_NS;
	value[1] = ns % SECOND_NS / (day ? 1000 : 1);
	*result = nr == __NR_time ? value[0] : 0;
	return nr == __NR_time || !target_out(at, value, sizeof(value));
}
