/*
 * Lock order.  A leader's threads take locks in some order; its followers' take
 * them in the same, lock by lock, so that what they do under a lock is the same.
 *
 * Locks are told apart by a hash of their address, their bucket.  Each bucket has
 * a counter, in memory of this process alone.  A leader's thread that has taken a
 * lock draws the bucket's next turn while it still holds the lock, and tells it
 * in its lane (EVENT_LOCK).  A follower's thread reads there which turn is its
 * own, waits until the counter stands just before it, calls the function, and
 * moves the counter on.  A follower that takes over counts on from there.
 *
 * Turns are drawn after whatever made the lock free, so a follower that keeps to
 * them never waits for ever.  Another release may lock where the leader does not,
 * or not lock where it does; so does one whose threads look at each other's memory
 * without a lock.  The first goes on unordered when the stream says something else,
 * of another kind or of another lock (pairs); the second's events are passed over at
 * the next lock or call.  Where that leaves threads waiting for each other, so that
 * nothing can go on, the one that waits for its turn goes on without it.
 *
 * What runs once (pthread_once, C++ statics) has one counter of its own.  The
 * leader tells who runs it, when it begins; the others only wait until it is done.
 *
 * While the process has one thread there is nothing to order and nothing is told.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/lanes/tick.h"
#include "engine/inside/locks/conditions.h"
#include "engine/inside/locks/lock_event.h"
#include "engine/inside/locks/lock_gate.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/locks/once.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/order_tick.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/rewind/image.h"
#include "engine/inside/rewind/stand.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/sample/seam.h"

#define MUTEX_TYPE	16
#define MUTEX_ROBUST	0x10
#define MUTEX_PRIO_INHERIT 0x20
#define WAIT_STACK	1024	/* what a wait's own functions take of the stack */
_Static_assert(!(LOCK_BUCKETS & (LOCK_BUCKETS - 1)) && LOCK_ONCE_BUCKET == LOCK_BUCKETS,
	       "buckets by a hash's highest bits, and one behind them");
_Static_assert(LOCK_ONCE_LAST < LOCK_COND_WAIT && LOCK_MUTEX_CLOCKLOCK < LOCK_RWLOCK_RDLOCK,
	       "kinds are told apart by where their group ends: lock_is_once, is_mutex");
_Static_assert(sizeof(struct bucket) == 64, "a line for each");

static const struct __kernel_timespec never = { 1ll << 40, 0 };

static uint64_t return_address(const struct lock_call *c)
{
	return *(const uint64_t *)(c + 1);
}

static uint64_t bucket_of(const struct lock_call *c)
{
	return lock_is_once(c) ? LOCK_ONCE_BUCKET : lock_bucket_at(lock_address(c));
}

/* Nobody is told; but who waited when this version came to lead looks whether it was taken. */
static void lock_untold(struct thread *t, const struct lock_call *c)
{
	if (!__atomic_load_n(&conditions_open, __ATOMIC_RELAXED) || !lock_turn_took(c, c->result))
		return;
	turn_draw(bucket_of(c));
	conditions_look(t);
}

/* `e` has been begun; the turn was drawn before. */
static void lock_tell_turn(struct thread *t, const struct lock_call *c, struct event *e,
			   uint64_t bucket, uint64_t turn)
{
	uint8_t ticked;

	MUST(t->has_lane && !t->following && (turn || bucket == LOCK_NO_TURN));
	e->result = (int32_t)c->result;
	e->arg[0] = bucket;
	e->arg[1] = turn;
	/* After the turn: what was told before the turn before it has no greater number. */
	e->seq = lead_seq_shown(t, &ticked);
	e->flags |= ticked;
	e->arg[2] = lock_address(c);
	e->arg[3] = (uint64_t)c->error;
	e->arg[4] = 0;
	if (t->pending) {
		e->flags |= EVENT_SIGNAL_NEXT;
		t->announced = 1;
	}
	lane_commit(t);
	if (ticked & EVENT_TICK)
		tick_stand(t);
}

static void lock_tell(struct thread *t, const struct lock_call *c)
{
	uint64_t bucket = LOCK_NO_TURN, turn = 0;
	struct event *e;

	lead_settle(t);
	e = writer_begin(&t->writer, EVENT_LOCK, (uint16_t)c->kind);
	if (!e)
		e = host_begin(&t->writer, EVENT_LOCK, (uint16_t)c->kind);
	if (lock_turn_took(c, c->result)) {
		bucket = bucket_of(c);
		turn = turn_draw(bucket);
	}
	lock_tell_turn(t, c, e, bucket, turn);
}

/* A clock ticked between the turn and the number. */
static long lock_told_ticked(struct thread *t, struct lock_call *c)
{
	MUST(writer_has_cell(&t->writer) && c->bucket < LOCK_BUCKETS && c->turn);
	lock_tell_turn(t, c, writer_begin(&t->writer, EVENT_LOCK, (uint16_t)c->kind), c->bucket,
		       c->turn);
	return TOOK_DONE;
}

/* It is more than an event that stands in one cell, or none. */
static INLINE bool is_odd(const struct thread *t, uint32_t now)
{
	return t->tells != LANE_TELLS || !writer_is_free(&t->writer) || tick_shows(t, now);
}

static INLINE void lock_put(struct thread *t, struct event *e, const struct lock_call *c,
			    uint64_t seq)
{
	e->head = EVENT_HEAD(EVENT_LOCK, c->kind, 0);
	e->seq = seq;
	e->result = 0;
	e->arg[3] = e->arg[4] = 0;
	writer_told(&t->writer, e, e + 1);
}

/* This runs on the program's stack, and takes nothing of it. */
lock_rest *lock_told(struct lock_call *c)
{
	struct thread *t = thread_self();
	const uint32_t now = CONSUME(ticks, &ticks);
	struct event *e = t->writer.cell;
	const uint64_t lock = c->arg[0], bucket = lock_bucket_at(lock);
	lock_rest *rest;
	uint64_t seq;

	if (__builtin_expect(is_odd(t, now), 0))
		goto odd;
	e->arg[0] = bucket;
	e->arg[1] = turn_draw(bucket);
	e->arg[2] = lock;
	seq = CONSUME(lead_seq, &lead_seq_now);
	if (__builtin_expect(now != CONSUME(ticks, &ticks), 0)) {
		c->bucket = bucket;
		c->turn = e->arg[1];
		return lock_told_ticked;
	}
	lock_put(t, e, c, seq);
	return __builtin_expect(sleepers_differ(t), 0) ? sleepers_told : NULL;
odd:
	rest = lock_took;
	/* Mostly not: not before it is. */
	__asm__ volatile("" : "+r"(rest));
	return rest;
}

/*
 * A follower's threads believe to have the leader's ids, and so do glibc's mutexes.
 * The kernel does not: it neither gives up for a thread that dies what it holds,
 * nor does it know whom to wait for.  So a thread does not ask it.
 */
static bool is_mutex(const struct lock_call *c)
{
	return c->kind > LOCK_ONCE_LAST && c->kind <= LOCK_MUTEX_CLOCKLOCK;
}

static bool thread_lives(const struct thread *t, int32_t id)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && o->vtid == id)
			return true;
	return false;
}

/* Waits until nobody holds it, or whoever does has died, as the leader's had. */
static void owner_wait(struct thread *t, const struct lock_call *c, bool dead)
{
	uint32_t *word = (uint32_t *)lock_address(c), now;
	struct idling p = { .kind = WAIT_turn };

	while ((now = CONSUME(mutex_word, word)) & FUTEX_TID_MASK) {
		int32_t owner = (int32_t)(now & FUTEX_TID_MASK);

		if (owner == t->vtid || (dead && !thread_lives(t, owner)))
			break;
		if (stand_look(t))
			p = (struct idling){ .kind = WAIT_turn };
		turn_wait_step(word, now, FUTEX_BITSET_MATCH_ANY, &p);
		if (lock_is_hopeless(t, &p)) {
			image_lost(t, LOSS_TURN, lock_address(c));
			break;
		}
	}
	if (dead && !(now & FUTEX_OWNER_DIED))
		BOTH_IF(mutex_word, word, &now, (now & FUTEX_WAITERS) | FUTEX_OWNER_DIED);
}

static void mutex_ready(struct thread *t, const struct lock_call *c)
{
	uint32_t type = is_mutex(c) ? *(uint32_t *)(lock_address(c) + MUTEX_TYPE) : 0;

	if (type & MUTEX_ROBUST && (int32_t)c->leaders == EOWNERDEAD)
		owner_wait(t, c, true);
	else if (type & MUTEX_PRIO_INHERIT)
		owner_wait(t, c, false);
}

static long lock_answer(struct thread *t, struct lock_call *c, const struct event *e)
{
	lock_event_take(t, c, e);
	c->result = c->leaders;
	if (c->bucket != LOCK_NO_TURN) {
		turn_wait(t, c->bucket, c->turn, lock_address(c));
		mutex_ready(t, c);
		t->taking = 1;
		if (is_mutex(c))
			PUBLISH(want_mutex, &t->want_mutex, lock_address(c));
	} else if (lock_how_of[c->kind] != LOCK_BY_RESULT) {
		if (!lock_is_wait(c))
			lock_signal_next(t, c);
		return ASK_GIVEN;
	}
	if (lock_deadline_of[c->kind])
		c->arg[lock_deadline_of[c->kind]] = (uint64_t)&never;
	return ASK_ORDERED;
}

/*
 * A wait that the leader did not make is over at once: its program looks again, and may
 * be where the leader is.  If it only waits again it waits for others, who need not see
 * the process at work to find that nothing goes on (idling_over).
 */
static void wait_idle(struct thread *t)
{
	struct __kernel_timespec pause = { 0, PAUSE_IDLE_NS };
	uint32_t at = (uint32_t)t->reader.cursor->at + 1;

	if (t->waited_at == at) {
		t->slot->idles++;
		OWN2(__NR_nanosleep, &pause, 0);
	}
	t->waited_at = at;
}

static long lock_unordered(struct thread *t, struct lock_call *c)
{
	__atomic_fetch_add(&((struct area *)boot.area)->locks_unordered, 1, __ATOMIC_RELAXED);
	t->lock_at = 0;		/* an event that was looked at behind queries is not this lock's */
	if (lock_is_wait(c))
		wait_idle(t);
	if (!is_mutex(c))
		return ASK_UNORDERED;
	if (!lock_is_wait(c) && !caller_in_libc(return_address(c)))
		image_lost(t, LOSS_LOCK, lock_address(c));
	c->state |= STATE_ASKED | STATE_OWN;
	c->bucket = LOCK_NO_TURN;
	PUBLISH(want_mutex, &t->want_mutex, lock_address(c));
	return ASK_ORDERED;
}

/* A runtime's, by way of libc or of libgcc's unwinder: the leader has none. */
static bool is_runtimes(struct thread *t, const struct lock_call *c)
{
	return caller_in_libc(return_address(c)) &&
	       caller_locks(t, return_address(c), (uint64_t)(c + 1) + sizeof(uint64_t));
}

static long lock_ask(struct thread *t, struct lock_call *c)
{
	const struct event *e = lock_event(t, c);
	long answer;

	if (!e && !t->following) {
		c->result = 0;
		return ASK_LEAD;
	}
	if (e && e->kind == EVENT_SIGNAL) {
		follow_signal(t, e);
		return CALL_RESTART;
	}
	if (e && !(lock_kind_fits(e, c->kind) && lock_is_same(t, c, e)))
		e = t->lock_at || t->ahead ? NULL : lock_behind_locks(t, c);
	answer = e ? lock_answer(t, c, e) : lock_unordered(t, c);
	again_leave(t);
	return answer;
}

long lock_ask_now(struct thread *t, struct lock_call *c)
{
	const struct event *e = t->following ? reader_peek(&t->reader) : NULL;
	uint64_t bucket = e && e->kind == EVENT_LOCK && e->call == c->kind ? event_bucket(e)
									   : LOCK_NO_TURN;

	order_tick_over(t);
	/* What is met again has an order, too (again_meet). */
	if (image_tries() || caller_in_libc(return_address(c)) || bucket == LOCK_NO_TURN ||
	    !turn_is_here(&lock_buckets[bucket], e->arg[1]) || !lock_is_same(t, c, e))
		return ASK_SLOW;
	return lock_answer(t, c, e);
}

/* The leader's call got it at once, ours did not yet; see lock_is_hopeless(). */
static bool try_again(struct thread *t, struct lock_call *c)
{
	struct __kernel_timespec pause = { 0, PAUSE_FIRST_NS };
	uint64_t waited;

	if (lock_turn_took(c, c->result) || lock_how_of[c->kind] == LOCK_BY_PLAIN)
		return false;
	if (c->tries++ < TURN_SPINS) {
		__builtin_ia32_pause();
		return true;
	}
	OWN2(__NR_nanosleep, &pause, 0);
	c->stood = order_all_stand(t) ? c->stood + 1 : 0;
	if (c->stood * PAUSE_FIRST_NS > lock_stood_most(t) / 2) {
		lock_futile_note(c->stood * PAUSE_FIRST_NS);
		image_lost(t, LOSS_TURN, lock_address(c));
		return false;
	}
	waited = (c->tries - TURN_SPINS) * PAUSE_FIRST_NS;
	wait_note(WAIT_lock, waited, waited >= wait_limit(WAIT_lock));
	return waited < wait_limit(WAIT_lock);
}

static long lock_ordered(struct thread *t, struct lock_call *c)
{
	bool turn = c->bucket != LOCK_NO_TURN;

	if (turn && !lock_is_wait(c) && try_again(t, c))
		return TOOK_AGAIN;
	PUBLISH(want_mutex, &t->want_mutex, 0);
	if (c->state & STATE_OWN)
		return TOOK_DONE;
	if (turn) {
		t->taking = 0;
		turn_done(c->bucket, c->turn);
		PUBLISH(thread_turning, &t->turning, 0);
		order_turn_done(t);
	}
	if (!turn || lock_turn_took(c, c->result))
		c->result = c->leaders;
	lock_signal_next(t, c);
	return TOOK_DONE;
}

long lock_took(struct thread *t, struct lock_call *c)
{
	bool asked = c->state & STATE_ASKED;

	if (asked)
		return lock_ordered(t, c);
	if (t->following && !lock_is_once(c) && lock_how_of[c->kind] != LOCK_BY_RESULT)
		return lock_turn_took(c, c->result) ? TOOK_REDO : TOOK_ASK;
	if ((lock_is_once(c) && once_turn_end(t)) || t->following)
		return TOOK_DONE;
	/* It was to come out and follow, and now it leads: nothing has timed out. */
	if (lock_is_wait(c) && t->condition) {
		lock_wait_is_out(t);
		c->result = 0;
	}
	if (t->has_lane && stream_followed(t) && !t->kept)
		lock_tell(t, c);
	else
		lock_untold(t, c);
	return TOOK_DONE;
}

/*
 * The lock gate's return address, and above it what was called: a word of the stack
 * may be anything, but hardly all of this.
 */
static bool call_within(uint64_t rsp, struct lock_call *c, bool wait)
{
	extern char lock_led[], lock_led_taken[];

	for (uint64_t at = rsp & ~7ull; at < rsp + WAIT_STACK; at += 8) {
		uint64_t word;

		if (target_in(&word, at, sizeof(word)))
			break;
		if ((word == (uint64_t)lock_led || word == (uint64_t)lock_led_taken) &&
		    !target_in(c, at + 8, sizeof(*c)) &&
		    c->kind < LOCK_KINDS && !c->state && (!wait || lock_is_wait(c)))
			return true;
	}
	return false;
}

uint64_t lock_wait_within(uint64_t rsp)
{
	struct lock_call c;

	return call_within(rsp, &c, true) ? c.arg[0] : 0;
}

bool lock_is_led(uint64_t rsp)
{
	struct lock_call c;

	return locks_on && call_within(rsp, &c, false);
}

/* A call of the lock gate; what it is about stands on the program's stack. */
long lock_serve(struct thread *t)
{
	struct lock_call *c = (struct lock_call *)t->frame.rsp;

	if (t->frame.rax == LOCK_TOOK)
		return lock_took(t, c);
	if (t->frame.rax == LOCK_BOUNDARY || t->frame.rax == LOCK_LATER)
		return 0;
	if (t->frame.rax == SEAM_HERE) {
		if (t->has_lane && !t->following)
			seam_pass(t);
		return 0;
	}
	if (!t->following)
		return ASK_LEAD;
	if (is_runtimes(t, c))
		return ASK_UNORDERED;
	return lock_is_once(c) ? once_ask(t, c) : lock_ask(t, c);
}
