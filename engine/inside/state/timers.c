/*
 * The timers of a process: setitimer, alarm, timer_create.  A follower has none; it notes the
 * leader's, and makes them when it leads, with the time that they have left.  A leader notes
 * what the kernel would not tell it when it is demoted.
 *
 * Timers have the leader's ids.  Newer kernels give an id that is asked for; older
 * ones count, so that some are made for nothing until it comes.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/prctl.h>
#include <linux/signal.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/now.h"
#include "engine/inside/rules/overdue.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/timers.h"

/*
 * Limit (takeovers): POSIX timers (timer_create) of a process. Beyond: further ones do not
 * tick when another version takes over, which is said.
 */
#define TIMERS		8192
#define TRIES		4096	/* ids that a kernel which counts may be behind */
#define RESTORE_IDS	77	/* PR_TIMER_CREATE_RESTORE_IDS, of Linux 6.15 */
#define THREAD_ID	4	/* SIGEV_THREAD_ID */
#define ABSOLUTE	1	/* TIMER_ABSTIME */

struct timer_event {
	uint64_t value;
	int32_t signo, notify, tid;
	int32_t pad[11];
};

_Static_assert(sizeof(struct timer_event) == 64, "the kernel's struct sigevent");
_Static_assert(!(TIMERS & (TIMERS - 1)) && TIMERS >= ROWS_PAGES, "ROWS_OF");

/*
 * Threads make and change timers at the same time: what stands below is changed with the
 * latch.  While the process takes over, or gives up, its threads stand.
 */
static bool some_timers;

/* --- how much is left ---------------------------------------------------------------- */

static int64_t ns_of(int64_t sec, int64_t ns)
{
	return sec * SECOND_NS + ns;
}

/*
 * Of a timer that was to come `value` after `since`; 0: it has come, for good.  One
 * that should have come and has not is due now.
 */
static int64_t left(int64_t value, int64_t interval, uint64_t since, bool has_come)
{
	int64_t n = value - (int64_t)(clock_ns(CLOCK_MONOTONIC) - since);

	if (!value || n > 0)
		return value ? n : 0;
	if (interval)
		return interval - -n % interval;
	return has_come ? 0 : 1;
}

/* --- setitimer and alarm -------------------------------------------------------------- */

LEADS static struct {
	struct __kernel_old_itimerval value;
	uint64_t since;
	bool has_come;
} itimer[3];

static void itimer_set(int which, const struct __kernel_old_itimerval *v)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	MUST((unsigned)which < sizeof(itimer) / sizeof(itimer[0]));

	latch_take(LATCH_timers);
	itimer[which].value = *v;
	itimer[which].since = now;
	itimer[which].has_come = false;
	some_timers = true;
	latch_give(LATCH_timers);
}

static void itimer_note(long nr, const uint64_t *args)
{
	uint32_t which = nr == __NR_alarm ? 0 : (uint32_t)args[0];
	struct __kernel_old_itimerval v = { { 0, 0 }, { 0, 0 } };

	if (nr == __NR_alarm)
		v.it_value.tv_sec = (uint32_t)args[0];
	else if (which > 2 || (args[1] && target_in(&v, args[1], sizeof(v))))
		return;
	itimer_set((int)which, &v);
}

static void itimer_start(int which)
{
	struct __kernel_old_itimerval v = itimer[which].value;
	int64_t n = left(ns_of(v.it_value.tv_sec, v.it_value.tv_usec * 1000),
			 ns_of(v.it_interval.tv_sec, v.it_interval.tv_usec * 1000),
			 itimer[which].since, itimer[which].has_come);

	if (which)		/* of processor time, which the two do not share */
		n = ns_of(v.it_value.tv_sec, v.it_value.tv_usec * 1000);
	if (!n)
		return;
	v.it_value.tv_sec = n / SECOND_NS;
	v.it_value.tv_usec = (n % SECOND_NS + 999) / 1000;
	OWN3(__NR_setitimer, which, &v, 0);
}

static void itimer_learn(int which)
{
	struct __kernel_old_itimerval was;

	if (OWN2(__NR_getitimer, which, &was) < 0)
		return;
	/* One whose signal is pending stands until that has come. */
	if (!was.it_value.tv_sec && !was.it_value.tv_usec)
		was.it_value = was.it_interval;
	itimer_set(which, &was);
}

/* --- timer_create --------------------------------------------------------------------- */

struct timer {
	uint64_t since;
	struct __kernel_itimerspec value;
	struct timer_event event;
	int32_t clock, id;
	bool used, absolute, has_come;
	bool real;		/* it is there, and stands while another version leads */
};

static struct rows timers = ROWS_OF(struct timer, TIMERS);

static struct timer *timer_at(uint32_t i)
{
	return rows_at(&timers, i);
}

static struct timer *timer_find(int32_t id)
{
	MUST(latch_is_held(LATCH_timers));
	for (uint32_t i = 0; i < timers.used; i++)
		if (timer_at(i)->used && timer_at(i)->id == id)
			return timer_at(i);
	return NULL;
}

static bool timer_add(const struct timer *made)
{
	struct timer *to = NULL;

	latch_take(LATCH_timers);
	for (uint32_t i = 0; i < timers.used && !to; i++)
		to = timer_at(i)->used ? NULL : timer_at(i);
	to = to ? to : rows_more(&timers);
	if (to) {
		*to = *made;
		some_timers = true;
	}
	latch_give(LATCH_timers);
	return to;
}

static void timer_made(struct thread *t, const uint64_t *args)
{
	struct timer_event plain = { .signo = SIGALRM };
	struct timer n = { .clock = (int32_t)args[0], .used = true,
			   .real = !t->following };

	if (target_in(&n.id, args[2], sizeof(n.id)))
		return;
	plain.value = (uint32_t)n.id;
	n.event = plain;
	if (args[1])
		target_in(&n.event, args[1], sizeof(n.event));
	if (!timer_add(&n))
		request_room(t, ROOM_TIMERS, TIMERS);
}

void timers_come(struct thread *t, const struct company_timer *timer, uint32_t n)
{
	MUST(n <= COMPANY_TIMERS && !t->following);
	for (uint32_t i = 0; i < n; i++) {
		const struct company_timer *is = &timer[i];
		struct timer made = { .clock = is->clock, .id = is->id, .used = true, .real = true,
				      .event = { .value = is->value, .signo = is->signo,
						 .notify = is->notify, .tid = is->tid } };

		if (!timer_add(&made))
			request_room(t, ROOM_TIMERS, TIMERS);
	}
}

static void timer_was_set(const uint64_t *args)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct __kernel_itimerspec value;
	struct timer *n;

	if (target_in(&value, args[2], sizeof(value)))
		return;
	latch_take(LATCH_timers);
	n = timer_find((int32_t)args[0]);
	if (n) {
		n->value = value;
		n->absolute = args[1] & ABSOLUTE;
		n->since = now;
		n->has_come = false;
	}
	latch_give(LATCH_timers);
}

static void timer_deleted(const struct thread *t, int32_t id)
{
	bool real = false;
	struct timer *n;

	latch_take(LATCH_timers);
	n = timer_find(id);
	if (n) {
		real = n->real && t->following;
		n->used = false;
	}
	latch_give(LATCH_timers);
	if (real)
		OWN1(__NR_timer_delete, id);
}

/* The thread that the program means by this id. */
static int32_t thread_real(int32_t vtid)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->vtid == vtid)
			return o->tid;
	return vtid;
}

/* A clock of processor time names its thread, or process. */
static int32_t clock_real(int32_t clock)
{
	int32_t whose = ~(clock >> 3);

	return clock >= 0 || !whose ? clock : (int32_t)((uint32_t)~thread_real(whose) << 3) |
					      (clock & 7);
}

static long timer_make_at(const struct timer *n, struct timer_event *e)
{
	int32_t id = n->id, made[8];
	long result;
	int tries = 0, many = 0;

	if (OWN6(__NR_prctl, RESTORE_IDS, 1, 0, 0, 0, 0) == 0) {
		result = OWN3(__NR_timer_create, clock_real(n->clock), e, &id);
		OWN6(__NR_prctl, RESTORE_IDS, 0, 0, 0, 0, 0);
		return result;
	}
	do {
		result = OWN3(__NR_timer_create, clock_real(n->clock), e, &id);
		if (result < 0 || id == n->id)
			break;
		made[many++ % 8] = id;
		if (many >= 8)	/* it counts on, whether they are there or not */
			OWN1(__NR_timer_delete, made[many % 8]);
	} while (id < n->id && ++tries < TRIES);
	for (int i = 0; i < (many < 7 ? many : 7); i++)
		OWN1(__NR_timer_delete, made[(many - 1 - i) % 8]);
	return result < 0 ? result : id == n->id ? 0 : -EAGAIN;
}

static void timer_start(struct thread *t, struct timer *n)
{
	struct timer_event e = n->event;
	struct __kernel_itimerspec v = n->value;
	uint64_t since = n->since;
	int64_t wait = ns_of(v.it_value.tv_sec, v.it_value.tv_nsec);

	MUST(n->used);

	if (e.notify == THREAD_ID)
		e.tid = thread_real(e.tid);
	n->real = n->real || timer_make_at(n, &e) == 0;
	if (!n->real) {
		request_ask(t, REQ_NOTE, NOTE_TIMER, (uint64_t)n->id, 0);
		return;
	}
	if (wait && n->absolute) {
		wait -= (int64_t)clock_ns(n->clock);
		since = clock_ns(CLOCK_MONOTONIC);
		wait = wait ? wait : -1;
	}
	wait = left(wait, ns_of(v.it_interval.tv_sec, v.it_interval.tv_nsec), since, n->has_come);
	if (!wait)
		return;
	v.it_value.tv_sec = wait / SECOND_NS;
	v.it_value.tv_nsec = wait % SECOND_NS;
	OWN4(__NR_timer_settime, n->id, 0, &v, 0);
}

static void timer_learn(struct timer *n)
{
	OWN2(__NR_timer_gettime, n->id, &n->value);
	n->absolute = n->has_come = false;
	n->since = clock_ns(CLOCK_MONOTONIC);
}

/* In a version that took over: the thread of a timer has another id to the kernel. */
long timers_create(struct thread *t)
{
	uint64_t at = t->frame.rsi;
	struct timer_event e;
	long result;

	if (!at || target_in(&e, at, sizeof(e)) || e.notify != THREAD_ID)
		return call_kernel(t);
	e.tid = thread_real(e.tid);
	result = OWN3(__NR_timer_create, clock_real((int32_t)t->frame.rdi), &e, t->frame.rdx);
	t->answered = 1;
	return result;
}

void timers_signal(const uint8_t *info)
{
	struct timer *n;

	if (!some_timers)
		return;
	latch_take(LATCH_timers);
	if (info_int(info, INFO_SIGNO) == SIGALRM && info_int(info, INFO_CODE) > 0)
		itimer[0].has_come = true;
	n = info_int(info, INFO_CODE) != SI_TIMER ? NULL :
	    timer_find(info_int(info, INFO_PID));	/* si_timerid has its place */
	if (n)
		n->has_come = true;
	latch_give(LATCH_timers);
}

/* --- all of them ------------------------------------------------------------------------ */

void timers_note(struct thread *t, long nr, const uint64_t *args)
{
	switch (nr) {
	case __NR_alarm:
	case __NR_setitimer:
		itimer_note(nr, args);
		break;
	case __NR_timer_create:
		timer_made(t, args);
		break;
	case __NR_timer_settime:
		timer_was_set(args);
		break;
	case __NR_timer_delete:
		timer_deleted(t, (int32_t)args[0]);
		break;
	}
}

/* The one with the next id: a kernel that counts does not go back. */
static struct timer *timer_behind(int64_t id)
{
	struct timer *n = NULL;

	for (uint32_t i = 0; i < timers.used; i++)
		if (timer_at(i)->used && timer_at(i)->id > id && (!n || timer_at(i)->id < n->id))
			n = timer_at(i);
	return n;
}

void timers_make(struct thread *t)
{
	struct timer *n = NULL;

	for (int i = 0; i < 3; i++)
		itimer_start(i);
	while ((n = timer_behind(n ? n->id : -1)))
		timer_start(t, n);
}

/* What is left of each. */
void timers_learn(struct thread *t)
{
	(void)t;
	for (int i = 0; i < 3; i++)
		itimer_learn(i);
	for (uint32_t i = 0; i < timers.used; i++)
		if (timer_at(i)->used)
			timer_learn(timer_at(i));
}

/* It follows: nothing may come of ours.  They stay there, with the program's ids. */
void timers_drop(struct thread *t)
{
	const struct __kernel_old_itimerval no_itimer = { { 0, 0 }, { 0, 0 } };
	const struct __kernel_itimerspec no_timer = { { 0, 0 }, { 0, 0 } };
	struct thread *o;

	(void)t;
	for (int i = 0; i < 3; i++)
		OWN3(__NR_setitimer, i, &no_itimer, 0);
	for (uint32_t i = 0; i < timers.used; i++)
		if (timer_at(i)->used)
			OWN4(__NR_timer_settime, timer_at(i)->id, 0, &no_timer, 0);
	for (uint32_t i = 0; (o = block_next(&i)); i++)
		overdue_forget(o);
}

/* None of them is there in a copy of the process, which knows of all. */
void timers_copied(void)
{
	for (uint32_t i = 0; i < timers.used; i++)
		timer_at(i)->real = false;
}

/* A child of fork has none. */
void timers_fork(struct thread *t)
{
	(void)t;
	if (!some_timers)
		return;
	some_timers = false;
	bytes_zero(itimer, sizeof(itimer));
	timers.used = 0;
}
