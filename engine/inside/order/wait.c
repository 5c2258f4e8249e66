/*
 * A follower waits for the next event of its lane, and takes it.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/gate/above.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/order/apart.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/edges.h"
#include "engine/inside/order/follow_realm.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/order_tick.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/rewind/stand.h"
#include "engine/inside/takeover/heir.h"
#include "engine/inside/takeover/takers.h"

#define LOOKS		4	/* before the first sleep: each takes the line from the leader */
/*
 * A lane that goes on within that time is looked at again and again, at growing distances;
 * then it wakes us.  So a leader at work makes no call to wake, or one in this time at most.
 */
#define LOOK_GROWS	4
/*
 * Where a sleep brings that much the next may be longer: each costs whoever has the processor a
 * switch, the leader too if there are few.
 */
#define CROWD_CELLS	16

/* In a call that is no event, too: the thread may lead from here on, or follow another. */
void follow_ended(struct thread *t)
{
	uint32_t ended = CONSUME(conduct_bits, &streams.conduct->ended);

	if (ended >> t->reader.cursor->source & 1 && reader_at_end(&t->reader))
		above.ended(t);
}

/* It stays so, but it may lead by now, and is judged as a leader then. */
void follow_broken(struct thread *t)
{
	long answer;

	do
		answer = request_ask(t, REQ_VERDICT, VERDICT_BROKEN, 0, 0);
	while (answer == ANSWER_RETRY);
	if (answer == ANSWER_STOP)
		OWN1(__NR_exit_group, 1);
	for (;;)
		change_wait(change_now(), PAUSE_WOKEN_NS);
}

/*
 * Without a monitor it can neither lead nor be heard.  But while versions are changed, one
 * that has its descriptors may still have to become the leader: it stays as long as its twin.
 */
bool follow_is_orphan(const struct thread *t)
{
	uint32_t source = t->reader.cursor->source;
	int32_t pid = t->reader.from->lane[t->lane].pid;

	if (monitor_alive() || take_is_done())
		return false;
	if (!(CONSUME(conduct_bits, &streams.conduct->ended) >> source & 1))
		return true;
	return heir_failed(source) || (pid > 0 && OWN2(__NR_kill, pid, 0) == -ESRCH);
}

void follow_skip_lane(struct thread *t)
{
	const struct event *e;

	while ((e = reader_peek(&t->reader))) {
		lock_passed(t, e);
		follow_take(t);
	}
}

/* The others lead already, and what is left here would be yesterday's answers. */
static bool is_left_behind(const struct thread *t)
{
	return take_is_done() && order_only_looks(t);
}

/* Sleeps that a thread has made for the next event: 0 is a sleep without an end. */
struct sleep {
	uint64_t ns;
	enum over over;
};

/* One who found it quiet in this call the last time need not look first. */
static struct sleep sleep_begin(const struct thread *t)
{
	bool quiet = t->rest == t->frame.rax + 1;
	uint64_t first = t->crowded ? PAUSE_IDLE_NS / LOOK_GROWS : PAUSE_FIRST_NS;

	return (struct sleep){ quiet ? 0 : first, OVER_NOT };
}

/* What it may be over by is not said to who sleeps. */
static void sleep_no_longer(struct sleep *s, enum over over)
{
	s->over = over;
	if (over != OVER_NOT && !s->ns)
		s->ns = PAUSE_FIRST_NS;
}

static void sleep_longer(struct sleep *s)
{
	s->ns *= LOOK_GROWS;
	if (s->over == OVER_NOT && s->ns > PAUSE_IDLE_NS)
		s->ns = 0;
	else if (s->ns > PAUSE_WOKEN_NS)
		s->ns = PAUSE_WOKEN_NS;
}

/* Until the lane goes on: that is looked for, or the lane wakes us. */
static void sleep_once(const struct reader *r, uint32_t seen, struct also also, struct sleep *s)
{
	if (s->ns && s->ns <= PAUSE_IDLE_NS)
		lane_sleep(r, seen, also, s->ns);
	else
		lane_rest(r, seen, also, s->ns);
	sleep_longer(s);
}

/*
 * Of a stream that has ended: what says that its lane has begun in the next one (stream_ended),
 * or, at the end of the start's record, that the leader's thread tells us of it (seam_join).
 */
static struct word begins_word(const struct thread *t)
{
	const struct conduct *c = streams.conduct;
	uint32_t source = t->reader.cursor->source % VERSIONS;
	const struct section *next = streams_section(&streams, c->next[source] % VERSIONS);
	const uint32_t *owner = (const uint32_t *)&next->lane[t->lane].owner;
	const uint32_t *at = source == ROW_START ? &next->lane[t->lane].readers : owner;

	if (!(CONSUME(conduct_bits, &c->ended) >> source & 1))
		return (struct word){ 0 };
	return (struct word){ at, __atomic_load_n(at, __ATOMIC_RELAXED) };
}

/* How often a thread was told something in a sleep of its own. */
static uint32_t told_asleep;

void follow_told_asleep(void)
{
	PUBLISH_BY(told_asleep, fetch_add, &told_asleep, 1);
	word_wake(&told_asleep);
}

static struct word told_word(over_test *test)
{
	if (!test)
		return (struct word){ 0 };
	return (struct word){ &told_asleep, CONSUME(told_asleep, &told_asleep) };
}

static void sleep_noted(struct thread *t, uint32_t seen, struct also also, struct sleep *s)
{
	uint64_t since = clock_ns(CLOCK_MONOTONIC);

	sleep_once(&t->reader, seen, also, s);
	if (clock_ns(CLOCK_MONOTONIC) - since >= PAUSE_IDLE_NS)
		t->rest = t->frame.rax + 1;
	else if (t->rest == t->frame.rax + 1)
		t->rest = 0;
	t->crowded = reader_peek(&t->reader) && t->reader.head - t->reader.pos >= CROWD_CELLS;
}

/*
 * Takes the looked-at event, and those behind it that were answered out of order;
 * the flags of the first.
 */
static uint8_t event_take(struct thread *t)
{
	uint8_t flags;

	if (apart_is_behind(t))
		return apart_take(t);
	flags = reader_take(&t->reader);
	if (t->reader.cursor->counted != t->reader.chunk + 1)
		image_read(t);
	for (apart_shift(t); t->ahead & 1; apart_shift(t))
		if (reader_peek(&t->reader))
			reader_take(&t->reader);
	room_look(&t->reader);
	return flags;
}

/* A query that is not the event's leaves that where it is: its turn is not waited for. */
static bool asks_aside(const struct thread *t, const struct event *e)
{
	int32_t nr = (int32_t)t->frame.rax;

	MUST(t == thread_self() && t->reader.cursor);
	return !lock_asked(t) && call_is_elastic(call_find(nr)) &&
	       !(e->kind == EVENT_CALL && e->call == nr);
}

static bool is_clock_call(const struct thread *t)
{
	return !lock_asked(t) && call_has(call_find((int32_t)t->frame.rax), TRAIT_CLOCK);
}

/* What the leader does behind a fault is met when it is known whether it dies of it. */
static bool fault_passed(struct thread *t)
{
	uint32_t seen = change_now();

	if (fault_crashed(t->reader.cursor->source % VERSIONS)) {
		follow_skip_lane(t);
		return true;
	}
	if (follow_is_orphan(t))
		OWN1(__NR_exit_group, 1);
	order_rests();
	fault_wait(t, seen, PAUSE_IDLE_NS);
	return false;
}

/* What other threads of the process are to do before the thread takes the event. */
static void others_first(struct thread *t, const struct event *e)
{
	if (event_is_turn(e))	/* the leader's had given it up: who is first may need it */
		hold_give(t);
	if (!event_has_turn(e))
		order_wait_fork(t, e->seq);
	order_step(t);
	if (e->flags & EVENT_TICK && !event_has_turn(e) && !again_passes(t, e))
		order_tick(t, e);
	again_meet(t, e);
}

static const struct event *event_wait(struct thread *t, over_test *test, void *what)
{
	struct sleep sleep = sleep_begin(t);

	for (uint32_t looks = 0;; looks++) {
		const struct event *e = (stand_look(t), reader_peek(&t->reader));
		enum over over = OVER_NOT;
		struct also also;
		uint32_t seen;

		room_look(&t->reader);
		if (!is_clock_call(t))
			order_tick_over(t);
		if (e && is_left_behind(t)) {
			follow_skip_lane(t);
			continue;
		}
		if (e && fault_stands(t)) {
			if (fault_passed(t))
				continue;
			if (test && test(what) == OVER_YES)
				return NULL;
			continue;
		}
		if (e && e->kind == EVENT_MOVED) {
			realm_follow(t, e);
			continue;
		}
		if (e && e->kind == EVENT_EDGE) {
			edge_wait(t, e->arg[EDGE_ARG]);
			event_take(t);
			continue;
		}
		if (e && e->kind != EVENT_SEAM && asks_aside(t, e))
			return e;
		if (e && e->kind != EVENT_SEAM) {
			others_first(t, e);
			return e;
		}
		if (e) {
			t->slot->seams++;
			event_take(t);
			continue;
		}
		if (t->reader.broken)
			follow_broken(t);
		if (looks < LOOKS) {
			__builtin_ia32_pause();
			continue;
		}
		seen = change_now();
		also = (struct also){ { begins_word(t), stand_word(), told_word(test) } };
		follow_ended(t);
		if (!t->following)
			return NULL;
		if (test)
			over = test(what);
		if (over == OVER_YES)
			return NULL;
		if (reader_peek(&t->reader))
			continue;
		if (follow_is_orphan(t))
			OWN1(__NR_exit_group, 1);
		order_rests();
		/* Between two streams there are steps that nobody says. */
		sleep_no_longer(&sleep, also.word[0].at ? OVER_PERHAPS : over);
		sleep_noted(t, seen, also, &sleep);
	}
}

const struct event *follow_event_or(struct thread *t, over_test *over, void *what)
{
	const struct event *e;

	/* A thread that forks sees all that was done before (order.c). */
	PUBLISH(thread_waits, &t->waits, 1);
	e = event_wait(t, over, what);
	order_works(t);
	return e;
}

const struct event *follow_event(struct thread *t)
{
	return follow_event_or(t, NULL, NULL);
}

static bool is_there(struct reader *ahead, unsigned n)
{
	const struct event *e = reader_peek(ahead);

	for (unsigned i = 0; e && i < n; i++)
		e = reader_next(ahead);
	return e;
}

static bool behind_wait(struct thread *t, unsigned n, over_test *test, void *what)
{
	for (struct sleep sleep = { PAUSE_FIRST_NS, OVER_NOT };;) {
		struct reader ahead = t->reader;
		struct also also = { { told_word(test) } };
		uint32_t seen = change_now();
		enum over over = OVER_NOT;

		if (is_there(&ahead, n))
			return true;
		if (ahead.broken || streams.conduct->ended >> t->reader.cursor->source & 1)
			return false;
		if (test)
			over = test(what);
		if (over == OVER_YES)
			return false;
		sleep_no_longer(&sleep, over);
		sleep_once(&ahead, seen, also, &sleep);
	}
}

/* Waits until more than `n` events are there; false: there will be no more, or it is over. */
bool follow_behind(struct thread *t, unsigned n, over_test *test, void *what)
{
	struct reader ahead = t->reader;
	bool there;

	MUST(n <= UINT16_MAX);
	if (is_there(&ahead, n))
		return true;
	/* It is at its next event, as others see, and waits for one behind that. */
	t->waits_at = (uint16_t)n;
	PUBLISH(thread_waits, &t->waits, 1);
	there = behind_wait(t, n, test, what);
	t->waits_at = 0;
	order_works(t);
	return there;
}

uint8_t follow_take(struct thread *t)
{
	uint8_t flags = event_take(t);

	t->slot->taken++;
	order_step(t);
	return flags;
}
