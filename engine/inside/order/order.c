/*
 * Order across the threads of a follower.  Locks are taken in the leader's order
 * (locks.c), and what threads give each other by calls has edges (edges.c).  What is
 * here goes by the events' sequence numbers.
 *
 * A thread that has slept for a time finds what the others did meanwhile.  A follower's
 * does not sleep, so it goes on when they have done what was told before: else one that
 * looks after something now and then would be ahead of those by as much as it slept.
 *
 * A fork is a point that no thread may be on the wrong side of, since the child
 * has a copy of all memory: the sequence number's top bits count the forks of the
 * process, and the fork itself waits until everything before it has been taken.
 * What came to its end while the leader forked is behind it.
 *
 * The end of a stream is one, too: what the leader's threads did to shared memory
 * must be done before anything of the next leader's is, in the next leader itself
 * as in all that follow it.
 *
 * All of it is a wait with a limit.  A program that is not ordered by its calls
 * at all must not be slowed down for nothing: after some waits of a kind that came
 * to nothing there are no more of them.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/lanes/rest.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/order_tick.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/rewind/stand.h"

#define LOOKS_MAX	512	/* of them in a lane that has ended */
#define SEQ_FIRST	1	/* behind whatever is told */
#define SPINS		50
#define SLEEP_SHARE	16	/* of the time waited: who waits for long must not use it up */
#define CPU_SHARE	4	/* as much of a processor, for one that others may have had */
_Static_assert(ORDER_BITS + 16 == 64 && ORDER_MASK == (1ull << ORDER_BITS) - 1,
	       "forks are counted above the number, modulo 2^16");

static uint32_t works;		/* counts waits: a stretch of work is before one, or behind it */

void order_works(struct thread *t)
{
	MUST(t == thread_self());
	PUBLISH(thread_worked, &t->worked, CONSUME(works, &works));
	__atomic_store_n(&t->waits, 0, __ATOMIC_RELAXED);
}

bool order_works_since(const struct thread *o, const struct thread *t)
{
	return (int32_t)(CONSUME(thread_worked, &o->worked) - t->stood) >= 0;
}

/* The process makes a copy of itself, or has made it, or failed to: what comes is after it. */
void order_forked(void)
{
	PUBLISH_BY(forks, fetch_add, &lead_seq_now, 1ull << ORDER_BITS);
}

/*
 * The sequence number of the next event that the thread must take; 0: none.  Queries it may
 * never make, and what it has answered behind them (`ahead`) it has done.
 */
static uint64_t next_of(const struct thread *o)
{
	struct reader r;
	const struct event *e;
	uint64_t done;

	if (fault_stands(o))
		return 0;
	/* Where it moves, or what it has answered is of another place: look again. */
	if (!reader_attach_other(&r, &streams, o->lane))
		return SEQ_FIRST;
	done = __atomic_load_n(&o->ahead, __ATOMIC_RELAXED);
	if (r.pos != CONSUME_AGAIN(cursor_at, &r.cursor->at))
		return SEQ_FIRST;
	e = reader_look(&r);
	for (uint32_t i = 0; e && i < AHEAD_EVENTS; i++) {
		if (!event_looks(e) && !(done >> i & 1))
			return e->seq;
		e = reader_next(&r);
	}
	return 0;
}

/* What the thread waits for is in its lane: it goes on, whatever that is. */
static bool has_come(const struct thread *o)
{
	struct reader r;
	const struct event *e;

	if (fault_stands(o))
		return false;
	if (!reader_attach_other(&r, &streams, o->lane) ||
	    r.pos != CONSUME_AGAIN(cursor_at, &r.cursor->at))
		return true;	/* it moves */
	e = reader_look(&r);
	for (uint32_t i = __atomic_load_n(&o->waits_at, __ATOMIC_RELAXED); e && i; i--)
		e = reader_next(&r);
	return e;
}

bool order_is_behind(uint64_t seq, uint64_t than)
{
	return seq && (seq & ORDER_MASK) < (than & ORDER_MASK);
}

/* The process has forked between the two events. */
static bool fork_between(uint64_t seq, uint64_t later)
{
	return (int16_t)((later >> ORDER_BITS) - (seq >> ORDER_BITS)) > 0;
}

/* The leader's thread gives something now, or did when the event was told: its number, or 0. */
static uint32_t given_by(const struct thread *o)
{
	return CONSUME(lane_giving, &o->reader.from->lane[o->lane].giving);
}

static bool gives_before(const struct thread *o, uint64_t seq)
{
	uint32_t giving = given_by(o);

	return giving && (int32_t)((uint32_t)seq - giving) > 0;
}

static bool is_newborn(const struct thread *o)
{
	return !CONSUME(thread_has_lane, &o->has_lane) && o->child_lane != CHUNK_NONE;
}

bool order_leads_to(uint32_t source, uint32_t to)
{
	for (int hops = 0; hops < VERSIONS && source != to; hops++)
		source = streams.conduct->next[source % VERSIONS];
	return source == to;
}

/*
 * It is at the end of a stream before this one, and will find something here when it
 * comes over: how old, it does not matter.  Of a follower that came late, a lane that it
 * is not told yet, or that another thread has by now, has nothing for it.
 */
static bool comes_over(const struct thread *o, uint32_t source)
{
	const struct lane *l = &streams_section(&streams, source)->lane[o->lane];
	uint32_t from = o->reader.cursor->source;

	if (from == source || !order_leads_to(from, source) || !l->head)
		return false;
	return from != ROW_START ||
	       (CONSUME(lane_readers, &l->readers) >> streams.self & 1 &&
		l->life == o->reader.cursor->life);
}

bool order_is_behind_of(const struct thread *o, const struct thread *t, uint64_t seq)
{
	uint64_t next;

	if (o == t || o->pid != t->pid || !o->following)
		return false;
	if (is_newborn(o))
		return true;
	if (!o->has_lane)
		return false;
	if (o->reader.cursor->source != t->reader.cursor->source)
		return comes_over(o, t->reader.cursor->source);
	if (gives_before(o, seq))
		return true;
	next = next_of(o);
	/*
	 * A call that was numbered before it was made may have come to its end behind a fork
	 * that is to come: its thread stands there until then.
	 */
	return order_is_behind(next, seq) && !(fork_between(seq, next) &&
					       CONSUME(thread_waits, &o->waits));
}

const struct thread *order_is_thread_behind(const struct thread *t, uint64_t seq)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (order_is_behind_of(o, t, seq))
			return o;
	return NULL;
}

/*
 * Who is waited for, how far it has come, and since when it has not come further: a wait's time
 * begins anew with each step.  So a thread may wait for as long as others have to read what was
 * told before, however long that is on a busy machine.
 */
struct awaited {
	const struct thread *who;
	uint64_t at;		/* of its cursor */
	uint64_t since;		/* it stands there; 0: it has yet to be seen */
	uint64_t own, all;	/* what it, and the process, had of a processor by then */
};

static uint64_t place_of(const struct thread *o)
{
	return o->has_lane && o->reader.cursor ?
	       __atomic_load_n(&o->reader.cursor->at, __ATOMIC_RELAXED) : 0;
}

static void awaited_begin(struct awaited *a, const struct thread *who, uint64_t since)
{
	MUST(who && since);
	a->who = who;
	a->at = place_of(who);
	a->since = since;
	a->own = clock_ns(cpu_clock(who->tid));
	a->all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/*
 * Where threads are waited for that do what they like, and not for what they have to read, there
 * is always one that takes a step: those have one time together.
 */
static void awaited_look(struct awaited *a, const struct thread *who, enum wait_kind kind,
			 uint64_t now)
{
	bool anew = !a->since || (kind != WAIT_busy && a->at != place_of(who));

	if (anew || a->who != who)
		awaited_begin(a, who, anew || kind != WAIT_busy ? now : a->since);
}

/* The monitor may have been long about its answer, and what it was asked for have come. */
static bool awaited_stays(const struct awaited *a, const struct thread *who, enum wait_kind kind)
{
	return who && (kind == WAIT_busy || (a->who == who && a->at == place_of(who)));
}

static bool had_more(int clock, uint64_t than, uint64_t ns)
{
	uint64_t now = clock_ns(clock);

	return now > than && now - than >= ns;	/* a thread that has ended has no clock */
}

/*
 * It waits for what its leader's has not told yet, and ours for nothing that its own has told: that
 * stands as well (lanes/tick.c), and both leaders may have no processor.  Or it waits for a turn,
 * and another's has drawn one before that and told nothing of it: that has none.
 */
static bool leaders_stand(const struct thread *t, const struct thread *who)
{
	uint32_t ended = __atomic_load_n(&streams.conduct->ended, __ATOMIC_RELAXED);
	struct reader r = t->reader;

	if (!who->has_lane || ended >> t->reader.cursor->source & 1)
		return false;
	return turns_are_untold(who) ||
	       (order_waits_for_more(who) && !(reader_peek(&r) && reader_next(&r)));
}

/*
 * So long have we waited, and it is not for want of a processor: on a busy machine a thread may
 * stand in the queue for one for seconds.  One that computes is waited for as long of its own
 * time.  Is it another that does, for whom it waits, what the process used was used by others,
 * too.
 */
static bool limit_is_met(struct thread *t, const struct awaited *a, uint64_t limit)
{
	MUST(a->who && a->since);
	if (leaders_stand(t, a->who))
		return false;
	return had_more(cpu_clock(a->who->tid), a->own, limit) ||
	       had_more(CLOCK_PROCESS_CPUTIME_ID, a->all, CPU_SHARE * limit) ||
	       !order_others_able(t);
}

/*
 * What is waited for here is what other threads do.  They say so now and then: who misses
 * it looks again soon enough.
 */
static uint32_t steps;		/* futex */
static uint32_t step_waiters;

/* False: nobody has said anything in that time. */
static bool step_wait(uint32_t seen, uint64_t ns)
{
	struct __kernel_timespec t = { (long long)(ns / SECOND_NS), (long long)(ns % SECOND_NS) };
	uint32_t waited;

	__atomic_fetch_add(&step_waiters, 1, __ATOMIC_RELAXED);
	OWN4(__NR_futex, &steps, FUTEX_WAIT_PRIVATE, seen, &t);
	waited = __atomic_fetch_sub(&step_waiters, 1, __ATOMIC_RELAXED);
	MUST(waited);
	return __atomic_load_n(&steps, __ATOMIC_RELAXED) != seen;
}

static void step_tell(void)
{
	PUBLISH_BY(steps, fetch_add, &steps, 1);
	OWN3(__NR_futex, &steps, FUTEX_WAKE_PRIVATE, 0x7fffffff);
}

/* Whom the thread waits for: NULL, for nobody any more. */
static const struct thread *stands_for(const struct thread *o)
{
	order_test *what = CONSUME(thread_stands, &o->stands);

	return what ? what(o, o->stands_seq) : NULL;
}

/* The thread has gone a step: who waited for it goes on, or waits for another from here on. */
void order_step(const struct thread *t)
{
	struct thread *o;

	if (!__atomic_load_n(&step_waiters, __ATOMIC_RELAXED))
		return;
	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		const struct thread *who;

		if (__atomic_load_n(&o->stands_for, __ATOMIC_RELAXED) != t)
			continue;
		who = stands_for(o);
		__atomic_store_n(&o->stands_for, who, __ATOMIC_RELAXED);
		if (!who)
			step_tell();
	}
}

/* In the copy, where nobody waits. */
void order_fork(struct thread *t)
{
	(void)t;
	if (lead_seq_now & ~ORDER_MASK || step_waiters) {
		lead_seq_now &= ORDER_MASK;
		step_waiters = 0;
	}
}

void order_rests(void)
{
	if (__atomic_load_n(&step_waiters, __ATOMIC_RELAXED))
		step_tell();
}

/* Whom it waits for may sleep for an event that is there: nobody wakes at each. */
static void sleepers_rouse(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->following && o->has_lane &&
		    /* One that stands has seen its event. */
		    CONSUME(thread_waits, &o->waits) == 1 &&
		    !__atomic_load_n(&o->stands, __ATOMIC_RELAXED) && has_come(o))
			lane_wake(o->reader.from, o->lane);
}

/* The leader has yet to tell what would bring it on. */
static bool leader_has_it(const struct thread *who)
{
	/* One that is being made is waited for, too. */
	return who && CONSUME(thread_has_lane, &who->has_lane) && order_waits_for_more(who);
}

static bool wait_while(struct thread *t, uint64_t seq, order_test *what, enum wait_kind kind,
		       uint64_t limit)
{
	uint64_t since = 0, look = 0, sleep = PAUSE_FIRST_NS, now = 0;
	struct awaited awaited = { .since = 0 };
	const struct thread *who;

	MUST(!t->stands && t == thread_self());	/* who waits twice is seen to wait once */

	t->stood = BOTH_BY(works, add_fetch, &works, 1);
	for (int i = 0; i < SPINS && what(t, seq); i++)
		__builtin_ia32_pause();
	t->stands_seq = seq;
	PUBLISH(thread_stands, &t->stands, what);
	order_step(t);		/* it is not at work any more */
	for (;;) {
		/* What was done before is seen. */
		uint32_t seen = CONSUME(steps, &steps);

		if (stand_look(t))
			since = awaited.since = 0;
		who = what(t, seq);
		__atomic_store_n(&t->stands_for, who, __ATOMIC_RELAXED);
		if (!who)
			break;
		now = clock_ns(CLOCK_MONOTONIC);
		since = since ? since : now;
		awaited_look(&awaited, who, kind, now);
		if (look < awaited.since + limit)
			look = awaited.since + limit;
		if (now >= look && limit_is_met(t, &awaited, limit) &&
		    awaited_stays(&awaited, what(t, seq), kind))
			break;
		if (now >= look)
			look = now + limit;
		sleepers_rouse(t);
		if (step_wait(seen, sleep))
			sleep = PAUSE_FIRST_NS;
		else if (sleep < (now - since) / SLEEP_SHARE)
			sleep *= 2;
	}
	PUBLISH(thread_stands, &t->stands, NULL);
	__atomic_store_n(&t->stands_for, NULL, __ATOMIC_RELAXED);
	if (since && kind < WAITS)
		wait_note(kind, now - since, who);
	if (since && !leader_has_it(who))
		wait_vain(kind, who);
	return !who;
}

bool order_wait_while(struct thread *t, uint64_t seq, order_test *what, enum wait_kind kind)
{
	return !wait_given_up(kind) && wait_while(t, seq, what, kind, wait_limit(kind));
}

bool order_is_before_fork(uint64_t seq)
{
	return seq >> ORDER_BITS != CONSUME(forks, &lead_seq_now) >> ORDER_BITS;
}

/* Whose event is the oldest: so far the process has come. */
static const struct thread *furthest_behind(const struct thread *t)
{
	const struct thread *o, *who = t;
	uint64_t least = ~0ull;

	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		uint64_t next = o != t && o->pid == t->pid && o->following && o->has_lane ?
				next_of(o) & ORDER_MASK : 0;

		if (next && next < least) {
			least = next;
			who = o;
		}
	}
	return who;
}

static const struct thread *before_fork(const struct thread *t, uint64_t seq)
{
	return order_is_before_fork(seq) ? furthest_behind(t) : NULL;
}

/*
 * It waits for what another has to do: for a turn, a lock, or an event that is not there.
 * One that need not wait any more, and has yet to run, does not.
 */
bool order_stands_till(const struct thread *o)
{
	if (CONSUME(thread_stands, &o->stands))
		return stands_for(o);
	if (lock_stands(o))
		return true;
	/* Its cursor is where it stays. */
	return order_waits_for_more(o) ||
	       (!next_of(o) && CONSUME(thread_waits, &o->waits) == WAITS_ASLEEP);
}

bool order_waits_for_more(const struct thread *o)
{
	/* First what it has met: who stands for an event that is there goes on with that. */
	return !has_come(o) && CONSUME(thread_waits, &o->waits) == 1;
}

/* No other thread of the process will go on by itself. */
bool order_all_stand(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->following && o->has_lane &&
		    !order_stands_till(o))
			return false;
	return true;
}

/* Another thread sleeps until it is woken, and was told what comes behind that. */
bool order_sleeper_behind(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->following && o->has_lane &&
		    CONSUME(thread_waits, &o->waits) == WAITS_ASLEEP && next_of(o))
			return true;
	return false;
}

/* One that sleeps until another wakes it may never ask for what it was told. */
bool order_is_awake(const struct thread *o)
{
	return CONSUME(thread_waits, &o->waits) != WAITS_ASLEEP ||
	       CONSUME(want_mutex, &o->want_mutex);
}

const struct thread *order_awake_behind(const struct thread *t, uint64_t seq)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (order_is_behind_of(o, t, seq) && order_is_awake(o))
			return o;
	return NULL;
}

/*
 * A sleeper may have been woken, and has yet to run.  Where it never comes in time, time
 * after time, threads sleep for what this one holds (libc's own lock at a fork).
 */
bool order_wait_for_awake(struct thread *t, uint64_t seq, order_test *what, order_test *awake,
			   enum wait_kind kind)
{
	return (!wait_given_up(WAITS) && wait_while(t, seq, what, WAITS, WAIT_SHORT_NS)) ||
	       order_wait_while(t, seq, awake, kind);
}

/* It has the fork, or something that is before it; or its leader is about to tell of it. */
static bool may_fork(const struct thread *o, uint64_t seq)
{
	uint64_t next = next_of(o);

	return order_is_awake(o) && (next ? fork_between(next, seq) : given_by(o) != 0);
}

static const struct thread *before_fork_awake(const struct thread *t, uint64_t seq)
{
	const struct thread *o;

	if (!order_is_before_fork(seq))
		return NULL;
	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->following && o->has_lane && may_fork(o, seq))
			return furthest_behind(t);
	return NULL;
}

/* An event of another epoch than ours: a fork is to come first. */
void order_wait_fork(struct thread *t, uint64_t seq)
{
	if (!order_is_before_fork(seq) || !seq || wait_given_up(WAIT_forked))
		return;
	/* Who forks may stand for this one's clock: in the leader it did not any more. */
	order_tick_over(t);
	order_wait_for_awake(t, seq, before_fork, before_fork_awake, WAIT_forked);
}

static void all_told(struct thread *t, uint64_t seq, enum wait_kind kind)
{
	bool met;

	if (!seq || wait_given_up(kind) || !order_is_thread_behind(t, seq))
		return;
	/* The event is not taken yet. */
	PUBLISH(thread_waits, &t->waits, 1);
	met = order_wait_for_awake(t, seq, order_is_thread_behind, order_awake_behind, kind);
	order_works(t);
	if (!met)
		request_ask(t, REQ_NOTE, NOTE_TOLD_BEFORE, seq & ORDER_MASK, 0);
}

/*
 * Before a fork, and a signal's handler.  To go on too early is to work on, or to copy, what the
 * others are about to change: patience is worth it.
 */
void order_wait_all_told(struct thread *t, uint64_t seq)
{
	all_told(t, seq, WAIT_told);
}

/* A call that lasts is over, and if nothing came, by its time. */
void order_wait_slept(struct thread *t, const struct event *e)
{
	if ((!e->result || e->result == -EAGAIN) && !in_turns() && rest_is(e->call, t->frame.arg))
		all_told(t, e->seq, WAIT_slept);
}

/*
 * Before the thread forks.  One that works for long after its last event did so in
 * the leader, too: it is not waited for, and where it stands differs anyhow.
 */
void order_wait_all(struct thread *t, uint64_t seq)
{
	order_wait_all_told(t, seq);
	if (seq)
		order_wait_while(t, seq, order_others_busy, WAIT_busy);
}

/*
 * Whether the thread has nothing left in its lane but queries and clocks.  One that
 * sleeps in a call of its own, as an allocator's does between two rounds, comes to
 * them when it will: nobody's order hangs on it.
 */
bool order_only_looks(const struct thread *o)
{
	struct reader r;
	const struct event *e;

	if (!reader_attach_other(&r, &streams, o->lane))
		return false;
	e = reader_look(&r);
	for (int i = 0; e && event_looks(e) && i < LOOKS_MAX; i++)
		e = reader_next(&r);
	return !e && !r.broken;
}

/*
 * What the other thread has still to read of the stream, or of one before it; a turn
 * that it has not done counts like an event, for the next is drawn behind it.
 */
static uint64_t left_of(const struct thread *t, const struct thread *o)
{
	const struct cursor *c = o->reader.cursor;
	uint64_t left;

	if (o == t || o->pid != t->pid || !o->following || !o->has_lane ||
	    !order_leads_to(c->source, t->reader.cursor->source))
		return 0;
	/* Turns that were taken before are seen. */
	left = o->reader.from->lane[o->lane].head - CONSUME(cursor_at, &c->at);
	if (left && order_only_looks(o))
		left = 0;
	/* A turn that is not under way has been done. */
	return left + CONSUME(thread_turning, &o->turning) + !!o->once_turn;
}

static uint64_t others_left(const struct thread *t, const struct thread **who)
{
	const struct thread *o;
	uint64_t left = 0;

	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		uint64_t more = left_of(t, o);

		if (more)
			*who = o;
		left += more;
	}
	return left;
}

/*
 * Before the thread leaves its stream.  One that stands in a wait of its own will not
 * go on, whatever the stream says.
 */
void order_wait_ended(struct thread *t)
{
	const struct thread *who = NULL;
	uint64_t left, least = ~0ull, since = 0, sleep = PAUSE_FIRST_NS;

	MUST(t->following);

	while ((left = others_left(t, &who))) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (left < least)
			since = now;
		least = left;
		if (now - since > wait_limit(WAIT_end)) {	/* without any progress */
			wait_note(WAIT_end, now - since, true);
			request_ask(t, REQ_NOTE, NOTE_NOT_ENDED, (uint64_t)who->tid, left);
			return;
		}
		sleepers_rouse(t);
		/* A hundred may wait for one, which needs the processor. */
		step_wait(__atomic_load_n(&steps, __ATOMIC_RELAXED), sleep);
		sleep = pause_longer(sleep);
	}
}
