/*
 * A thread may keep what a clock says in a plain variable, for all others to go by.
 * Such a variable changes with the clock's seconds: then the leader's other threads show
 * in their next events that they were told before or after it (EVENT_TICK), and a
 * follower's wait for each other (order_tick).  The clock may be read more than once
 * before that, by a library first.  In a process of very many threads, each with a clock
 * of its own, not all of them do.
 *
 * What a thread does between two events, others' may have fallen on either side of.  So
 * there is a hold: the thread that has read the second goes on only when each other one
 * shows the tick, or is in a call that will; and they stop behind what they have told
 * until it tells something else than a clock.  By then the variable is written.  That
 * takes a microsecond or two, once a second.  Who works on without a call, or has no
 * processor, is waited for, but not for long.  All this is within one process: of two that share
 * their memory either may be killed where it holds the other.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/lanes/tick.h"

#define TICKS_MOST	64	/* in a second */
#define PLACES_FOUND	4	/* in a second of a thread's */
#define SECOND_UNKNOWN	1
#define HOLD_SPINS	500
#define HASTE_MOST	5
#define SLEEP_SHARE	16	/* of what was slept is the next sleep */

uint32_t ticks;			/* of this process, twice; and TICK_DRAWN */
struct thread *tick_holder;

static unsigned haste;		/* holds that did not come to an end in time, lately */
static bool holder_waits;

/*
 * What has been seen of the threads that are waited for, one after the other.  What a sleep takes
 * beyond its time is no wait for them: this thread itself has no processor.
 */
struct hold {
	enum wait_kind kind;
	uint64_t slept, until, cpu;
	uint32_t looks;
	bool over;
};

struct look {
	int32_t tid;
	char state;
};

/* Its state as /proc has it, behind its name. */
static void state_read(void *what)
{
	struct look *l = what;
	char path[48] = "/proc/self/task/", stat[64], digits[12];
	long fd, at = 16, n = 0;

	MUST(l->tid > 0);
	for (int32_t tid = l->tid; tid; tid /= 10)
		digits[n++] = (char)('0' + tid % 10);
	while (n)
		path[at++] = digits[--n];
	bytes_copy(path + at, "/stat", 6);
	fd = OWN4(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	n = fd < 0 ? 0 : OWN3(__NR_read, fd, stat, sizeof(stat));
	while (n-- > 2)
		if (stat[n - 2] == ')') {
			l->state = stat[n];
			break;
		}
}

/* 0: that is not to be had. */
static char state_of(const struct thread *o)
{
	struct look l = { o->tid, 0 };

	return l.tid > 0 && call_aside(state_read, &l) ? l.state : 0;
}

/*
 * It is where it tells nothing: in the program or a call that is not told, in one that has
 * its number, or in a futex that it began as a follower (follow_futex.c) and sleeps in still.
 */
static bool tells_nothing(const struct thread *o)
{
	uint8_t away = CONSUME(thread_away, &o->away);

	return !o->busy || away == AWAY_NUMBERED || away == AWAY_UNTOLD ||
	       CONSUME(thread_waits, &o->waits) == WAITS_ASLEEP;
}

/* It sleeps there.  Where it has told of a call, it may sleep for room in the ring. */
static bool is_asleep(const struct thread *o)
{
	return tells_nothing(o) && state_of(o) == 'S';
}

static void hold_next(struct hold *h)
{
	h->looks = 0;
	h->cpu = 0;
}

/* One who keeps others waiting for want of a processor is not to have to share it with them. */
static void hold_sleep(struct hold *h)
{
	uint64_t ns = h->slept / SLEEP_SHARE > PAUSE_FIRST_NS ? h->slept / SLEEP_SHARE
							       : PAUSE_FIRST_NS;
	struct __kernel_timespec slice = { 0, (long long)ns };

	OWN2(__NR_nanosleep, &slice, 0);
	h->slept += ns + PAUSE_FIRST_NS;	/* the kernel adds so much to it */
}

/* Where such a wait was in vain lately, the next ones are shorter. */
static uint64_t hold_limit(const struct hold *h, uint64_t ns)
{
	return h->kind == WAIT_tick ? ns >> haste : ns;
}

/* A step of waiting for another thread; false: it was long enough. */
static bool hold_step(struct hold *h, const struct thread *o)
{
	bool anew = h->kind == WAIT_written && holder_waits;
	uint64_t cpu;

	if (h->looks++ < HOLD_SPINS) {
		__builtin_ia32_pause();
		return true;
	}
	if (h->over || is_asleep(o))
		return false;
	cpu = clock_ns(cpu_clock(o->tid));
	if (!h->cpu || anew)
		h->cpu = cpu;
	if (!h->until || anew)
		h->until = h->slept + hold_limit(h, wait_limit(h->kind));
	/* One that has a processor and makes no call may go on so for ever. */
	h->over = h->slept >= h->until || cpu - h->cpu >= hold_limit(h, 2 * WAIT_BRIEF_NS);
	if (!h->over)
		hold_sleep(h);
	return !h->over;
}

static void hold_end(const struct hold *h)
{
	if (h->slept || h->over)
		wait_note(h->kind, h->slept, h->over);
}

static void hold_release(struct thread *holder)
{
	PUBLISH_IF(tick_holder, &tick_holder, &holder, NULL);
}

/*
 * Whom `o` holds: who has shown the tick.  Where it has gone on to the next one meanwhile it
 * waits for us to show that.
 */
static bool is_held(const struct thread *t, const struct thread *o)
{
	return CONSUME(tick_holder, &tick_holder) == o &&
	       (int32_t)(t->ticks.shown - CONSUME(ticks_held, &o->ticks.held)) >= 0;
}

/*
 * Behind an event that shows a tick: until what the clock said has been written down.  Where that
 * takes long the next event says that it may not have been.
 */
void tick_stand(struct thread *t)
{
	/* What was written is seen. */
	struct thread *o = CONSUME(tick_holder, &tick_holder);
	struct hold h = { .kind = WAIT_written };

	if (!o || o == t || is_guest(t))
		return;
	while (is_held(t, o))
		if (CONSUME(thread_away, &o->away) == AWAY || !hold_step(&h, o)) {
			hold_release(o);
			break;
		}
	if (h.over) {
		t->ticks.let = t->ticks.shown;
		PUBLISH(ticks_shown, &t->ticks.shown, t->ticks.shown - 1);
	}
	hold_end(&h);
}

/* The holder is about to tell of something. */
void tick_end(struct thread *t)
{
	t->holds = 0;
	hold_release(t);
}

/* In the program, or about to be there with what shows no tick. */
static bool is_between(const struct thread *o, uint32_t now)
{
	/* What it told, and did before, is done. */
	uint32_t shown = CONSUME(ticks_shown, &o->ticks.shown);

	return o->has_lane && !o->following && shown != now && o->ticks.let != shown + 1 &&
	       CONSUME(thread_away, &o->away) != AWAY;
}

static void others_wait(const struct thread *t, uint32_t now)
{
	struct hold h = { .kind = WAIT_tick };
	struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		if (o == t || o->pid != t->pid)
			continue;
		hold_next(&h);
		while (is_between(o, now))
			if (!hold_step(&h, o))
				o->ticks.let = o->ticks.shown + 1;
	}
	hold_end(&h);
	if (h.over && haste < HASTE_MOST)
		haste++;
	else if (!h.over && haste)
		haste--;
}

/* Where another has the hold, the thread stands here, with what it has not told yet. */
static void hold_take(struct thread *t)
{
	struct thread *nobody = NULL;

	MUST(t->has_lane && !t->following);

	while (!BOTH_IF(tick_holder, &tick_holder, &nobody, t)) {
		PUBLISH(ticks_shown, &t->ticks.shown, tick_now());
		tick_stand(t);
		nobody = NULL;
	}
	t->holds = 1;
	holder_waits = true;
}

uint32_t tick_settled(void)
{
	struct __kernel_timespec pause = { 0, PAUSE_FIRST_NS };
	uint32_t now, looks = 0;

	/* A few instructions of a thread; one in so many times it has no processor for them. */
	while ((now = CONSUME(ticks, &ticks)) & TICK_DRAWN)
		if (looks++ < HOLD_SPINS)
			__builtin_ia32_pause();
		else
			OWN2(__NR_nanosleep, &pause, 0);
	return now;
}

/*
 * The number of a clock's event that is about to be told: who finds the program changed
 * comes behind it.  Locks have no number of their own: not this one's, either.  Meanwhile nobody
 * draws one: it would be greater, and not show the tick, so that in a follower neither of the two
 * would wait for the other.
 */
uint64_t tick_number(struct thread *t, bool hold)
{
	uint64_t seq;
	uint32_t now;

	MUST(t->has_lane && !t->following);

	hold = hold && !is_guest(t);
	if (hold) {
		hold_take(t);
		BOTH_BY(ticks, fetch_or, &ticks, TICK_DRAWN);
	}
	seq = lead_seq();
	giving_set(t, seq);
	lead_seq();
	now = BOTH_BY(ticks, add_fetch, &ticks, 2) & ~TICK_DRAWN;
	if (hold) {
		BOTH_BY(ticks, fetch_and, &ticks, ~TICK_DRAWN);
		PUBLISH(ticks_held, &t->ticks.held, now);
	}
	if (hold || t->ticks.shown == now - 2)
		t->ticks.shown = now;
	return seq;
}

/* It is told. */
void tick_told(struct thread *t)
{
	giving_end(t);
	if (!t->holds)
		return;
	if (tick_holder == t) {
		/* Who said `away`, or came back, before it saw the tick is seen to have done so. */
		everyones_barrier();
		others_wait(t, ticks);
	}
	/* Whoever has the hold now: nobody stands without a limit. */
	holder_waits = false;
}

/*
 * It tells of something, or has, and is not back in the program, which may be about to write that
 * down: whom it wakes by that often has its processor next.
 */
static bool is_telling(const struct thread *o)
{
	return __atomic_load_n(&o->busy, __ATOMIC_RELAXED) && !CONSUME(thread_away, &o->away) &&
	       CONSUME(thread_waits, &o->waits) != WAITS_FULL && !request_awaited(o);
}

/* What they have told so far comes before the fork in followers: so it does here. */
void tick_fork(struct thread *t)
{
	struct hold h = { .kind = WAIT_tick };
	const struct thread *o;

	MUST(t->has_lane && !t->following);
	/* Of two that fork neither waits for the other. */
	PUBLISH(thread_away, &t->away, AWAY_NUMBERED);
	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		if (o == t || o->pid != t->pid || !o->has_lane || o->following)
			continue;
		hold_next(&h);
		while (is_telling(o) && hold_step(&h, o))
			;
	}
	hold_end(&h);
}

/* The second that the call has read, of which clock; 0: none that ticks. */
static uint32_t clock_second(const struct walk *w, long nr, uint32_t *clock)
{
	const int which = tick_clock(w);
	int64_t second = w->result;

	if (which < 0)
		return 0;
	*clock = (uint32_t)which;
	if (nr != __NR_time &&
	    (w->result || target_in(&second, w->args[nr == __NR_clock_gettime], sizeof(second))))
		return 0;
	return (uint32_t)second;
}

/* Where it is kept what the place has read; of another the row has another key. */
static struct tick_place *place_of(struct thread *t, uint32_t key)
{
	struct tick_place *set = &t->ticks.place[tick_set(key)];

	for (uint32_t i = 0; i < TICK_WAYS; i++)
		if (set[i].key == key)
			return &set[i];
	return &set[t->ticks.next++ % TICK_WAYS];
}

/*
 * Whether the second is new to the place that reads it.  A library may have read it before:
 * it keeps its own.  One that is not known is
 * believed to have read none of this second: it is so where a program's loop comes to its
 * first one, here or behind a takeover.  A thread whose places are another each time is not
 * held for each.
 */
static bool second_is_new(struct thread *t, const struct walk *w, long nr, uint32_t clock,
			  uint32_t second)
{
	uint32_t key = tick_key(w, nr), before = t->ticks.second[clock];
	struct tick_place *p = place_of(t, key);
	bool known = p->key == key, seen = known && p->second == second;

	*p = (struct tick_place){ key, second };
	t->ticks.second[clock] = second;
	if (before != second)
		t->ticks.found = 0;
	return before && !seen &&
	       (known || before != second || t->ticks.found++ < PLACES_FOUND);
}

/* The call has read a second for the first time, or is a clock's behind one that has. */
bool tick_begins(struct thread *t, const struct walk *w, long nr)
{
	static uint32_t most_second, most;
	uint32_t clock, second = clock_second(w, nr, &clock);

	if (!second || !second_is_new(t, w, nr, clock, second))
		return t->ticks.goes_on;
	if (clock && __atomic_exchange_n(&most_second, second, __ATOMIC_RELAXED) != second)
		__atomic_store_n(&most, 0, __ATOMIC_RELAXED);
	return __atomic_add_fetch(&most, 1, __ATOMIC_RELAXED) <= TICKS_MOST;
}

/* What the thread has read as a follower's is not known: it was some other second. */
void ticks_lead(struct thread *t)
{
	t->ticks = (struct ticks){ .second = { SECOND_UNKNOWN, SECOND_UNKNOWN } };
	t->holds = 0;
}

/* A copy of the process: one thread. */
void ticks_fork(struct thread *t)
{
	t->holds = t->away = 0;
	if (!tick_holder && !holder_waits)
		return;
	tick_holder = NULL;
	holder_waits = false;
	ticks &= ~TICK_DRAWN;
}
