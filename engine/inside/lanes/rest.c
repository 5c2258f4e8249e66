/*
 * What is left of a call's time.  A call that time ends (LASTS in the table) may be made twice:
 * a thread that sleeps in it is called to stand, and makes it again when it goes on; or
 * it waited as a follower, and leads now.  The program is to get the rest of its time, not all of
 * it anew: where twins were made each second, a wait for two would never end.
 *
 * The gate notes the processor's counter as such a call comes, whichever way it takes (`time` in
 * gate.S: no more, for these are the calls that event loops make).  Only when it is made by C
 * code, which is where it is made again, is that turned into time, and taken off.  The argument
 * stays the program's: the kernel is shown another, and followers are told of the former.
 *
 * Some calls write what is left into the program's own memory (IO in the table) each time that
 * they end: for these the time counts from there.
 */
#include <asm/unistd.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/table.h"
#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/lanes/now.h"
#include "engine/inside/lanes/rest.h"

/* What arguments count, in nanoseconds. */
#define MILLI	(SECOND_NS / 1000)
#define MICRO	(MILLI / 1000)
#define SECONDS_MAX	(INT64_MAX / SECOND_NS - 1)	/* whose nanoseconds are a number */

/* The counter at a time before all calls. */
static struct { uint64_t counter, ns; } since;

void rest_begin(void)
{
	since.counter = __builtin_ia32_rdtsc();
	since.ns = clock_ns(CLOCK_MONOTONIC);
}

/* a * b / c, where it fits. */
static uint64_t scaled(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t high;

	MUST(a <= c && c);
	asm("mulq %3; divq %4" : "+a"(a), "=&d"(high) : "0"(a), "r"(b), "r"(c) : "cc");
	return a;
}

/* A counter that another processor was ahead of: not at all. */
int64_t rest_gone(const struct thread *t)
{
	uint64_t now = __builtin_ia32_rdtsc(), ns = clock_ns(CLOCK_MONOTONIC);

	if (t->began <= since.counter || now <= t->began || ns <= since.ns)
		return 0;
	return (int64_t)scaled(now - t->began, ns - since.ns, now - since.counter);
}

static bool is_time(const struct arg_desc *a)
{
	return a->kind == KIND_MEM && a->dir != DIR_OUT &&
	       (a->what == LAYOUT_timespec || a->what == LAYOUT_timeval);
}

static bool is_until(const struct arg_desc *a, uint64_t value)
{
	return a->kind == KIND_FLAGS && a->what == XLAT_timer_flags && value & TIMER_ABSTIME;
}

/* Of what a process computes; ours is not that. */
static bool is_processors(const struct arg_desc *a, uint64_t value)
{
	return a->kind == KIND_ENUM && a->what == XLAT_clockids &&
	       ((int32_t)value < 0 || (int32_t)value == CLOCK_PROCESS_CPUTIME_ID);
}

/* Which of its arguments says how long; -1: none, it ends by no such time, or at one. */
static int time_arg(const struct call_desc *d, const uint64_t args[])
{
	if (!call_has(d, TRAIT_LASTS))
		return -1;
	for (int i = 0; i < d->nargs; i++) {
		if (is_until(&d->args[i], args[i]) || is_processors(&d->args[i], args[i]))
			return -1;
		if (d->args[i].kind == KIND_WAIT)
			return (int32_t)args[i] > 0 ? i : -1;
		if (is_time(&d->args[i]))
			return args[i] ? i : -1;
	}
	return -1;
}

bool rest_is(long nr, const uint64_t args[])
{
	return time_arg(call_find_variant(nr, args), args) >= 0;
}

void rest_cut(struct thread *t, long nr, const uint64_t args[])
{
	const struct call_desc *d = call_find_variant(nr, args);
	int at = time_arg(d, args);

	if (at >= 0 && d->args[at].dir == DIR_IO)
		t->began = __builtin_ia32_rdtsc();
}

/* In whole parts, of which the last may be begun: a call ends late rather than early. */
static int64_t left(int64_t ns, int64_t gone, int64_t part)
{
	return ns > gone ? (ns - gone + part - 1) / part : 0;
}

static long with_milliseconds(struct thread *t, int at)
{
	uint64_t asked = t->frame.arg[at];
	long result;

	t->frame.arg[at] = (uint64_t)left((int32_t)asked * MILLI, rest_gone(t), MILLI);
	result = call_gate(t);
	t->frame.arg[at] = asked;
	return result;
}

/* `part`: what its second word counts. */
static void time_cut(struct __kernel_timespec *time, int64_t part, int64_t gone)
{
	int64_t parts = left(time->tv_sec * SECOND_NS + time->tv_nsec * part, gone, part);

	time->tv_sec = parts / (SECOND_NS / part);
	time->tv_nsec = parts % (SECOND_NS / part);
}

static bool is_valid(const struct __kernel_timespec *time, int64_t part)
{
	return time->tv_sec >= 0 && time->tv_sec < SECONDS_MAX && time->tv_nsec >= 0 &&
	       time->tv_nsec < SECOND_NS / part;
}

static long with_time(struct thread *t, const struct arg_desc *a, int at)
{
	uint64_t asked = t->frame.arg[at];
	int64_t part = a->what == LAYOUT_timeval ? MICRO : 1;
	struct __kernel_timespec time;
	long result;

	if (target_in(&time, asked, sizeof(time)) || !is_valid(&time, part))
		return call_gate(t);
	time_cut(&time, part, rest_gone(t));
	t->frame.arg[at] = (uint64_t)&time;
	result = call_gate(t);
	t->frame.arg[at] = asked;
	/* As in the kernel it is no error where that cannot be written. */
	if (a->dir == DIR_IO && !target_out(asked, &time, sizeof(time)))
		t->began = __builtin_ia32_rdtsc();
	return result;
}

long call_kernel_timed(struct thread *t)
{
	long nr = (int32_t)t->frame.rax;
	const struct call_desc *d = call_find_variant(nr, t->frame.arg);
	int at = time_arg(d, t->frame.arg);

	/* That was of an earlier one.  A futex of another kind may be a slice: follow_futex.c. */
	if (!(call_traits(nr) & TRAIT_LASTS))
		t->began = 0;
	if (at < 0)
		return call_gate(t);
	MUST(at < CALL_ARGS);
	return d->args[at].kind == KIND_WAIT ? with_milliseconds(t, at)
					     : with_time(t, &d->args[at], at);
}
