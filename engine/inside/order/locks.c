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
#include "engine/inside/order/locks.h"

#define SPINS		200	/* looks at a turn before the thread sleeps */
#define WAKE_BITS	32	/* turns that are told apart by who sleeps for them */
#define SLEEP_FIRST_NS	50000
#define SLEEP_LAST_NS	10000000
#define IDLE_NS		2000000000ull	/* of a process whose threads wait for each other */
#define STOOD_NS	100000000ull	/* of a process where each thread waits for another */
#define STOOD_ENDED_NS	4000000ull	/* the same where there will be no more events */
#define IDLE_SHARE	20	/* it uses less than one part in so many of a processor */
#define TRIES_MAX	10000	/* of a function that should have succeeded */
#define PAUSE_NS	200000	/* between them */
#define WAIT_PAUSE_NS	2000000	/* between waits that are not the leader's */
#define FUTILE_MOST	6
#define MUTEX_OWNER	8	/* in glibc's pthread_mutex_t, whose first word is the futex */
#define MUTEX_TYPE	16
#define MUTEX_ROBUST	0x10
#define MUTEX_PRIO_INHERIT 0x20
#define SECOND_NS	1000000000ull
#define WAIT_STACK	1024	/* what a wait's own functions take of the stack */

uint8_t locks_on;

#define GIVE_UP		3	/* after so many a lock is not ordered any more */

static struct bucket {
	uint64_t turn;		/* the last that was drawn, or is done */
	uint32_t waiters;
	uint32_t given_up;	/* turns that never came */
	uint64_t line[6];
} buckets[LOCK_BUCKETS + 1];

static uint32_t progress;	/* turns that came */
static uint32_t noted;

static const uint8_t how_of[LOCK_KINDS] = {
#define LOCK(kind, function, undo, deadline, how) [LOCK_##kind] = LOCK_BY_##how,
#include "engine/abi/locks.def"
};

static const uint8_t deadline_of[LOCK_KINDS] = {
#define LOCK(kind, function, undo, deadline, how) [LOCK_##kind] = deadline,
#include "engine/abi/locks.def"
};

static const struct __kernel_timespec never = { 1ll << 40, 0 };

void locks_begin(void)
{
	locks_on = 1;
}

void locks_child(void)
{
	locks_on = 0;
	ticks_child();
	for (uint32_t i = 0; i <= LOCK_BUCKETS; i++)
		if (buckets[i].waiters)
			buckets[i].waiters = 0;
}

void locks_renew(void)
{
	for (uint32_t i = 0; i <= LOCK_BUCKETS; i++) {
		/* Sequentially consistent: as in turn_done. */
		__atomic_store_n(&buckets[i].turn, 0, __ATOMIC_SEQ_CST);
		buckets[i].given_up = 0;
	}
}

static bool is_wait(const struct lock_call *c)
{
	return how_of[c->kind] == LOCK_BY_COND;
}

static bool is_once(const struct lock_call *c)
{
	return c->kind <= LOCK_ONCE_LAST;
}

/* Whether a follower's call is the one that an event tells of; waits are all alike. */
static bool kind_fits(const struct event *e, uint32_t kind)
{
	return e->kind == EVENT_LOCK &&
	       (e->call == kind || (e->call < LOCK_KINDS && how_of[e->call] == LOCK_BY_COND &&
				    how_of[kind] == LOCK_BY_COND));
}

static uint64_t lock_address(const struct lock_call *c)
{
	return c->arg[is_wait(c)];
}

static uint64_t return_address(const struct lock_call *c)
{
	return *(const uint64_t *)(c + 1);
}

static uint64_t bucket_at(uint64_t address)
{
	return (address >> 2) * 0x9e3779b97f4a7c15ull >> 32 & (LOCK_BUCKETS - 1);
}

static uint64_t bucket_of(const struct lock_call *c)
{
	return is_once(c) ? LOCK_ONCE_BUCKET : bucket_at(lock_address(c));
}

uint64_t lock_turn_last(uint64_t address)
{
	return __atomic_load_n(&buckets[bucket_at(address)].turn, __ATOMIC_RELAXED);
}

/* Does a call with this result hold the lock? */
static bool took(const struct lock_call *c, int64_t result)
{
	int32_t r = (int32_t)result;

	switch (how_of[c->kind]) {
	case LOCK_BY_ONCE:
	case LOCK_BY_GUARD:
		return true;
	case LOCK_BY_RESULT:
		return false;
	case LOCK_BY_COND:
		return r == 0 || r == ETIMEDOUT || r == EOWNERDEAD;
	default:
		return r == 0 || r == EOWNERDEAD;
	}
}

/* --- the leader ------------------------------------------------------------------ */

static void lock_tell(struct thread *t, const struct lock_call *c)
{
	struct event *e;
	uint8_t ticked;

	lead_settle(t);
	e = writer_begin(&t->writer, EVENT_LOCK, (uint16_t)c->kind);
	if (!e)
		e = host_begin(&t->writer, EVENT_LOCK, (uint16_t)c->kind);
	e->result = (int32_t)c->result;
	e->arg[0] = LOCK_NO_TURN;
	e->arg[1] = 0;
	if (took(c, c->result)) {
		uint64_t bucket = bucket_of(c);

		e->arg[0] = bucket;
		e->arg[1] = __atomic_add_fetch(&buckets[bucket].turn, 1, __ATOMIC_ACQ_REL);
	}
	/* After the turn: what was told before the turn before it has no greater number. */
	e->seq = lead_seq_shown(t, &ticked);
	e->flags |= ticked;
	e->arg[2] = lock_address(c);
	e->arg[3] = (uint64_t)c->error;
	e->arg[4] = 0;
	if (t->pending) {
		e->flags |= EVENT_SIGNAL_NEXT;
		t->told = 1;
	}
	writer_commit(&t->writer);
	if (ticked)
		tick_stand(t);
	sleepers_look(t);
}

/* --- patience ---------------------------------------------------------------------- */

struct patience {
	uint64_t since, cpu, stood;
	uint32_t progress;
	uint32_t looks;
	uint64_t sleep;
};

static void patience_begin(struct patience *p)
{
	p->since = clock_ns(CLOCK_MONOTONIC);
	p->cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	p->progress = __atomic_load_n(&progress, __ATOMIC_RELAXED);
}

/* For so long no turn has come, and no thread of the process did anything, or could. */
static bool patience_over(struct thread *t, struct patience *p, uint64_t limit)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), cpu;

	if (!p->since || p->progress != __atomic_load_n(&progress, __ATOMIC_RELAXED)) {
		patience_begin(p);
		return false;
	}
	if (now - p->since < limit)
		return false;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - p->cpu;
	if (cpu < (now - p->since) / IDLE_SHARE && !order_others_able(t))
		return true;
	patience_begin(p);
	return false;
}

static bool source_ended(const struct thread *t)
{
	uint32_t ended = __atomic_load_n(&streams.conduct->ended, __ATOMIC_RELAXED);

	return ended >> t->reader.cursor->source & 1;
}

/* Another thread wants a mutex that this one holds. */
static bool is_wanted(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		uint64_t mutex = __atomic_load_n(&o->want_mutex, __ATOMIC_ACQUIRE);
		int32_t owner = 0;

		if (o != t && o->pid == t->pid && mutex &&
		    !target_in(&owner, mutex + MUTEX_OWNER, sizeof(owner)) && owner == t->vtid)
			return true;
	}
	return false;
}

/* Waits that came to nothing.  Where the order is lost, each further one is shorter. */
static uint32_t futile;

static uint64_t stood_most(const struct thread *t)
{
	uint32_t times = __atomic_load_n(&futile, __ATOMIC_RELAXED) / GIVE_UP;

	return (source_ended(t) ? STOOD_ENDED_NS : STOOD_NS) >>
	       (times < FUTILE_MOST ? times : FUTILE_MOST);
}

static void futile_note(void)
{
	__atomic_fetch_add(&futile, 1, __ATOMIC_RELAXED);
}

/*
 * Whether to go on without the turn.  Its event is told before those that are drawn
 * behind it, but for the moment between the two: where every thread waits for
 * another, and one for us, it will not come.  One that waits in a place that we do
 * not know may go on, until it is found that it does not.
 */
static bool hopeless(struct thread *t, struct patience *p)
{
	uint64_t now;

	if (!p->sleep)
		return false;
	if (!is_wanted(t) || !order_all_stand(t)) {
		p->stood = 0;
		return patience_over(t, p, IDLE_NS);
	}
	now = clock_ns(CLOCK_MONOTONIC);
	if (!p->stood)
		p->stood = now;
	if (now - p->stood <= stood_most(t))
		return false;
	futile_note();
	return true;
}

static void given_up(struct thread *t, uint64_t address)
{
	if (!__atomic_exchange_n(&noted, 1, __ATOMIC_RELAXED))
		request_ask(t, REQ_NOTE, NOTE_LOCK_ORDER, address, 0);
}

/* --- turns -------------------------------------------------------------------------- */

static bool turn_is(const struct bucket *b, uint64_t turn)
{
	/* Acquire: pairs with turn_done; what was done before it is seen. */
	return (int64_t)(__atomic_load_n(&b->turn, __ATOMIC_SEQ_CST) - (turn - 1)) >= 0;
}

/*
 * A step of waiting that needs nobody to wake us.  The processor is not yielded: on a
 * busy machine that is as long as all others' slices of it, and who is woken comes first.
 */
static bool wait_awake(struct patience *p)
{
	if (p->looks >= SPINS)
		return false;
	p->looks++;
	__builtin_ia32_pause();
	return true;
}

/* One for *word to change, longer each time. */
static void wait_step(uint32_t *word, uint32_t seen, uint32_t bits, struct patience *p)
{
	struct __kernel_timespec until;
	uint64_t end;

	if (wait_awake(p))
		return;
	p->sleep = p->sleep ? p->sleep * 2 : SLEEP_FIRST_NS;
	if (p->sleep > SLEEP_LAST_NS)
		p->sleep = SLEEP_LAST_NS;
	end = clock_ns(CLOCK_MONOTONIC) + p->sleep;
	until = (struct __kernel_timespec){ (long long)(end / SECOND_NS),
					    (long long)(end % SECOND_NS) };
	OWN6(__NR_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, &until, 0, bits);
}

static uint32_t wake_bit(uint64_t turn)
{
	return 1u << turn % WAKE_BITS;
}

static void turn_look(struct bucket *b, uint64_t turn, struct patience *p)
{
	uint32_t seen;

	if (wait_awake(p))
		return;
	/* Sequentially consistent, with turn_done: one of us sees the other. */
	__atomic_fetch_add(&b->waiters, 1, __ATOMIC_SEQ_CST);
	seen = (uint32_t)__atomic_load_n(&b->turn, __ATOMIC_SEQ_CST);
	if (!turn_is(b, turn))
		wait_step((uint32_t *)&b->turn, seen, wake_bit(turn), p);
	__atomic_fetch_sub(&b->waiters, 1, __ATOMIC_RELAXED);
}

static void turn_wait(struct thread *t, uint64_t bucket, uint64_t turn, uint64_t address)
{
	struct bucket *b = &buckets[bucket];
	struct patience p = { 0 };

	if (turn_is(b, turn) || b->given_up >= GIVE_UP)
		return;
	t->want_bucket = (uint32_t)bucket;
	t->want_turn = turn;
	/* Release: who sees that it waits sees for what (lock_stands). */
	__atomic_store_n(&t->taking, 1, __ATOMIC_RELEASE);
	while (!turn_is(b, turn)) {
		turn_look(b, turn, &p);
		if (hopeless(t, &p)) {
			given_up(t, address);
			b->given_up++;
			break;
		}
	}
	t->taking = 0;
	__atomic_store_n(&t->want_turn, 0, __ATOMIC_RELEASE);
}

/* The thread waits for a turn that has not come, or for a mutex that somebody holds. */
bool lock_stands(const struct thread *o)
{
	uint64_t turn = __atomic_load_n(&o->want_turn, __ATOMIC_ACQUIRE);
	uint64_t mutex = __atomic_load_n(&o->want_mutex, __ATOMIC_ACQUIRE);
	int32_t owner = 0;

	if (turn)
		return !turn_is(&buckets[o->want_bucket], turn);
	/* Its own: it has just got it.  Without an owner it is about to be free, or taken. */
	return mutex && !target_in(&owner, mutex + MUTEX_OWNER, sizeof(owner)) && owner &&
	       owner != o->vtid;
}

/* Never back: a thread that did not wait for its turn may come late. */
static void turn_done(uint64_t bucket, uint64_t turn)
{
	struct bucket *b = &buckets[bucket];
	uint64_t now = __atomic_load_n(&b->turn, __ATOMIC_RELAXED);
	uint32_t next;

	/* Sequentially consistent, with turn_is and turn_sleep. */
	while ((int64_t)(turn - now) > 0 &&
	       !__atomic_compare_exchange_n(&b->turn, &now, turn, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	/* Some may get lost: it only has to change. */
	__atomic_store_n(&progress, progress + 1, __ATOMIC_RELAXED);
	/* The next one alone, unless some were passed over. */
	next = now + 1 == turn ? wake_bit(turn + 1) : FUTEX_BITSET_MATCH_ANY;
	if (__atomic_load_n(&b->waiters, __ATOMIC_SEQ_CST))
		OWN6(__NR_futex, &b->turn, FUTEX_WAKE_BITSET_PRIVATE, 0x7fffffff, 0, 0, next);
}

/* The stream is another's memory: a bucket that is none has no turn. */
static uint64_t event_bucket(const struct event *e)
{
	uint64_t bucket = __atomic_load_n(&e->arg[0], __ATOMIC_RELAXED);

	return bucket <= LOCK_ONCE_BUCKET ? bucket : LOCK_NO_TURN;
}

void lock_passed(struct thread *t, const struct event *e)
{
	uint64_t bucket = event_bucket(e), turn = e->arg[1];

	if (e->kind != EVENT_LOCK || bucket == LOCK_NO_TURN)
		return;
	turn_wait(t, bucket, turn, e->arg[2]);
	turn_done(bucket, turn);
}

/* --- the follower: whether to wait for an event ----------------------------------------- */

struct wanted {
	struct thread *t;
	const struct lock_call *call;
	struct patience patience;
};

/* Does another thread wait for a lock that this one may hold? */
static bool others_take(const struct thread *t)
{
	for (uint32_t i = 0; i < AREA_THREADS; i++) {
		const struct thread *o = block_live(i);

		if (o && o != t && o->pid == t->pid && o->taking)
			return true;
	}
	return false;
}

/* It may be that the leader takes no such lock, and tells of none. */
static bool may_be_over(const struct lock_call *c)
{
	return how_of[c->kind] == LOCK_BY_PLAIN || how_of[c->kind] == LOCK_BY_TRY;
}

/* No event is to be waited for any more. */
static bool wait_over(void *what)
{
	struct wanted *w = what;

	if (!others_take(w->t) && !is_wanted(w->t)) {
		w->patience.since = 0;
		return false;
	}
	return patience_over(w->t, &w->patience, IDLE_NS);
}

/* --- the follower: what runs once --------------------------------------------------------- */

/* Its control: 0 while nobody has begun, or after who had has thrown. */
static uint32_t *once_word(const struct lock_call *c)
{
	return (uint32_t *)c->arg[0];
}

/* What is 1 in libc while it runs is 1 in TSan, as in guards, when it is done. */
static bool once_is_done(const struct lock_call *c, uint32_t value)
{
	bool libcs = c->kind == LOCK_ONCE && !*(const uint64_t *)(c->board + HOOK_ERROR);

	return libcs ? value == 2 : (value & 0xff) != 0;
}

static bool no_wait(void *what)
{
	(void)what;
	return true;
}

/*
 * This thread is to run it only if the leader's did: then all that the leader ran
 * before has begun here, and this has not.
 */
static bool once_is_ours(const struct lock_call *c, const struct event *e)
{
	return e && e->kind == EVENT_LOCK && e->call == c->kind &&
	       turn_is(&buckets[LOCK_ONCE_BUCKET], e->arg[1]) && !*once_word(c);
}

/* The turn is over when the control shows that it has begun, not before. */
static bool once_turn_end(struct thread *t)
{
	if (!t->once_turn)
		return false;
	turn_done(LOCK_ONCE_BUCKET, t->once_turn);
	t->once_turn = 0;
	return true;
}

static long once_ask(struct thread *t, struct lock_call *c)
{
	struct patience p = { 0 };

	once_turn_end(t);
	for (;;) {
		uint32_t seen = __atomic_load_n(once_word(c), __ATOMIC_ACQUIRE);
		const struct event *e;

		if (once_is_done(c, seen))
			return ASK_UNORDERED;
		e = follow_event_or(t, no_wait, NULL);
		if (!t->following)
			return ASK_LEAD;
		if (e && e->kind == EVENT_SIGNAL) {
			follow_signal(t, e);
			return CALL_RESTART;
		}
		if (once_is_ours(c, e)) {
			t->once_turn = e->arg[1];
			follow_take(t);
			return ASK_ORDERED;
		}
		wait_step(once_word(c), seen, FUTEX_BITSET_MATCH_ANY, &p);
		if (p.sleep && patience_over(t, &p, IDLE_NS)) {
			given_up(t, c->arg[0]);
			return ASK_UNORDERED;
		}
	}
}

/* --- the follower: which lock --------------------------------------------------------------- */

/*
 * Which lock of the leader's is which of ours is learnt from what is matched.  Memory
 * is used again, so a pair that comes up now and then only does not count.
 */
#define PAIRS		4096
#define PAIR_SURE	4
#define PAIR_MOST	64

static struct pair {
	uint64_t own, leaders;
	uint32_t source;	/* the version whose lock it is */
	uint32_t count;
} pairs[PAIRS];

/* What is known of the lock; NULL: nothing yet. */
static struct pair *pair_of(const struct thread *t, const struct lock_call *c)
{
	struct pair *p = &pairs[lock_address(c) * 0x9e3779b97f4a7c15ull >> 32 & (PAIRS - 1)];

	return p->own == lock_address(c) && p->source == t->reader.cursor->source ? p : NULL;
}

static bool is_pair(const struct thread *t, const struct lock_call *c, const struct event *e)
{
	const struct pair *p = pair_of(t, c);

	return p && p->leaders == e->arg[2];
}

static void pair_learn(const struct thread *t, const struct lock_call *c, const struct event *e)
{
	pairs[lock_address(c) * 0x9e3779b97f4a7c15ull >> 32 & (PAIRS - 1)] =
		(struct pair){ lock_address(c), e->arg[2], t->reader.cursor->source, 1 };
}

static bool is_same_lock(const struct thread *t, const struct lock_call *c,
			 const struct event *e)
{
	struct pair *p = pair_of(t, c);

	if (p && p->leaders == e->arg[2]) {
		p->count += p->count < PAIR_MOST;
		return true;
	}
	if (p && p->count >= PAIR_SURE) {
		p->count -= PAIR_SURE;
		return false;
	}
	pair_learn(t, c, e);
	return true;
}

/* The event behind locks that this version does not take, which are passed over; or NULL. */
static const struct event *behind_locks(struct thread *t, const struct lock_call *c)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);
	uint32_t n = 0;

	do {
		if (!e || !event_aside(e) || !event_is_plain(e) || n++ == AHEAD_EVENTS)
			return NULL;
		e = reader_next(&ahead);
	} while (!e || !kind_fits(e, c->kind) || !is_pair(t, c, e));
	for (; n; n--) {
		lock_passed(t, reader_peek(&t->reader));
		follow_take(t);
	}
	return reader_peek(&t->reader);
}

/* --- the follower: locks ---------------------------------------------------------------- */

/*
 * The event of a lock of the kind, behind queries that this version has yet to
 * make, or never will: they stay (see answer_elastic).
 */
static const struct event *behind_queries(struct wanted *w)
{
	struct thread *t = w->t;
	uint32_t n = 0;

	while (n < AHEAD_EVENTS && follow_behind(t, n, may_be_over(w->call) ? wait_over : NULL, w)) {
		struct reader ahead = t->reader;
		const struct event *e = reader_peek(&ahead);

		for (uint32_t i = 0; e && i < n; i++)
			e = reader_next(&ahead);
		for (; e && n < AHEAD_EVENTS; n++, e = reader_next(&ahead)) {
			if (t->ahead >> n & 1)
				continue;
			if (kind_fits(e, w->call->kind)) {
				t->lock_at = n;
				return e;
			}
			if (!event_looks(e))
				return reader_peek(&t->reader);
		}
	}
	return reader_peek(&t->reader);
}

static const struct event *lock_event(struct thread *t, struct lock_call *c)
{
	struct wanted w = { t, c, { 0 } };
	const struct event *e;

	do
		e = follow_event_or(t, may_be_over(c) ? wait_over : NULL, &w);
	while (e && e->kind == EVENT_CALL && rules_given() && rules_drop_front(t));
	t->lock_at = 0;
	if (!e || !event_looks(e))
		return e;
	/* Release: as in follow_event_or. */
	__atomic_store_n(&t->waits, 1, __ATOMIC_RELEASE);
	e = behind_queries(&w);
	__atomic_store_n(&t->waits, 0, __ATOMIC_RELAXED);
	return e;
}

static void event_take(struct thread *t, struct lock_call *c, const struct event *e)
{
	c->turn = e->arg[1];
	c->tries = c->stood = 0;
	/* A wait that has no limit cannot reach it. */
	c->leaders = c->kind == LOCK_COND_WAIT && e->result == ETIMEDOUT ? 0 : e->result;
	c->error = (int64_t)e->arg[3];
	c->state |= STATE_ASKED;
	if (e->flags & EVENT_SIGNAL_NEXT)
		c->state |= STATE_SIGNAL;
	c->bucket = took(c, c->leaders) ? event_bucket(e) : LOCK_NO_TURN;
	/* Release: who sees the event taken sees that its turn is not done (order.c). */
	__atomic_store_n(&t->turning, c->bucket != LOCK_NO_TURN, __ATOMIC_RELEASE);
	if (t->lock_at)
		t->ahead |= 1ull << t->lock_at;
	else
		follow_take(t);
	t->lock_at = 0;
}

/* The leader's handler ran behind the call: so does ours. */
static void signal_next(struct thread *t, const struct lock_call *c)
{
	const struct event *e = c->state & STATE_SIGNAL ? follow_event(t) : NULL;

	if (e && e->kind == EVENT_SIGNAL)
		follow_signal(t, e);
}

/* --- mutexes that know their owner -------------------------------------------------------- */

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
	struct patience p = { 0 };

	while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) & FUTEX_TID_MASK) {
		int32_t owner = (int32_t)(now & FUTEX_TID_MASK);

		if (owner == t->vtid || (dead && !thread_lives(t, owner)))
			break;
		wait_step(word, now, FUTEX_BITSET_MATCH_ANY, &p);
		if (hopeless(t, &p))
			break;
	}
	if (dead && !(now & FUTEX_OWNER_DIED))
		__atomic_compare_exchange_n(word, &now, (now & FUTEX_WAITERS) | FUTEX_OWNER_DIED,
					    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
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
	event_take(t, c, e);
	c->result = c->leaders;
	if (c->bucket != LOCK_NO_TURN) {
		turn_wait(t, c->bucket, c->turn, lock_address(c));
		mutex_ready(t, c);
		t->taking = 1;
		if (is_mutex(c))
			__atomic_store_n(&t->want_mutex, lock_address(c), __ATOMIC_RELEASE);
	} else if (how_of[c->kind] != LOCK_BY_RESULT) {
		if (!is_wait(c))
			signal_next(t, c);
		return ASK_GIVEN;
	}
	if (deadline_of[c->kind])
		c->arg[deadline_of[c->kind]] = (uint64_t)&never;
	return ASK_ORDERED;
}

/*
 * A wait that the leader did not make is over at once: its program looks again, and may
 * be where the leader is.  If it only waits again it waits for others, who need not see
 * the process at work to find that nothing goes on (patience_over).
 */
static void wait_idle(struct thread *t)
{
	struct __kernel_timespec pause = { 0, WAIT_PAUSE_NS };
	uint32_t at = (uint32_t)t->reader.cursor->at + 1;

	if (t->waited_at == at)
		OWN2(__NR_nanosleep, &pause, 0);
	t->waited_at = at;
}

static long lock_unordered(struct thread *t, struct lock_call *c)
{
	__atomic_fetch_add(&((struct area *)boot.area)->locks_unordered, 1, __ATOMIC_RELAXED);
	if (is_wait(c))
		wait_idle(t);
	if (!is_mutex(c))
		return ASK_UNORDERED;
	c->state |= STATE_ASKED | STATE_OWN;
	c->bucket = LOCK_NO_TURN;
	/* Release: pairs with lock_stands. */
	__atomic_store_n(&t->want_mutex, lock_address(c), __ATOMIC_RELEASE);
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

	if (!e && !t->following) {
		c->result = 0;
		return ASK_LEAD;
	}
	if (e && e->kind == EVENT_SIGNAL) {
		follow_signal(t, e);
		return CALL_RESTART;
	}
	if (e && !(kind_fits(e, c->kind) && is_same_lock(t, c, e)))
		e = t->lock_at || t->ahead ? NULL : behind_locks(t, c);
	return e ? lock_answer(t, c, e) : lock_unordered(t, c);
}

long lock_ask_now(struct thread *t, struct lock_call *c)
{
	const struct event *e = t->following ? reader_peek(&t->reader) : NULL;
	uint64_t bucket = e && e->kind == EVENT_LOCK && e->call == c->kind ? event_bucket(e)
									   : LOCK_NO_TURN;

	order_tick_over(t);
	if (caller_in_libc(return_address(c)) || bucket == LOCK_NO_TURN || e->flags & EVENT_TICK ||
	    !turn_is(&buckets[bucket], e->arg[1]) || !order_is_clear(t, e->seq) ||
	    !is_same_lock(t, c, e))
		return ASK_SLOW;
	return lock_answer(t, c, e);
}

/* The leader's call got it at once, ours did not yet; see hopeless(). */
static bool try_again(struct thread *t, struct lock_call *c)
{
	struct __kernel_timespec pause = { 0, PAUSE_NS };

	if (took(c, c->result) || how_of[c->kind] == LOCK_BY_PLAIN)
		return false;
	if (c->tries++ < SPINS) {
		__builtin_ia32_pause();
		return true;
	}
	OWN2(__NR_nanosleep, &pause, 0);
	c->stood = order_all_stand(t) ? c->stood + 1 : 0;
	if (c->tries < TRIES_MAX && c->stood * PAUSE_NS <= stood_most(t) / 2)
		return true;
	futile_note();
	return false;
}

static long lock_ordered(struct thread *t, struct lock_call *c)
{
	bool turn = c->bucket != LOCK_NO_TURN;

	if (turn && !is_wait(c) && try_again(t, c))
		return TOOK_AGAIN;
	__atomic_store_n(&t->want_mutex, 0, __ATOMIC_RELEASE);
	if (c->state & STATE_OWN)
		return TOOK_DONE;
	if (turn) {
		t->taking = 0;
		turn_done(c->bucket, c->turn);
		__atomic_store_n(&t->turning, 0, __ATOMIC_RELEASE);
	}
	if (!turn || took(c, c->result))
		c->result = c->leaders;
	signal_next(t, c);
	return TOOK_DONE;
}

long lock_took(struct thread *t, struct lock_call *c)
{
	bool asked = c->state & STATE_ASKED;

	if (asked)
		return lock_ordered(t, c);
	if (t->following && !is_once(c) && how_of[c->kind] != LOCK_BY_RESULT)
		return took(c, c->result) ? TOOK_REDO : TOOK_ASK;
	if ((is_once(c) && once_turn_end(t)) || t->following)
		return TOOK_DONE;
	if (t->has_lane && stream_followed(t) && !t->kept)
		lock_tell(t, c);
	return TOOK_DONE;
}

/*
 * The lock gate's return address, and above it what was called: a word of the stack
 * may be anything, but hardly all of this.
 */
static bool call_within(uint64_t rsp, struct lock_call *c, bool wait)
{
	extern char lock_led[];

	for (uint64_t at = rsp & ~7ull; at < rsp + WAIT_STACK; at += 8) {
		uint64_t word;

		if (target_in(&word, at, sizeof(word)))
			break;
		if (word == (uint64_t)lock_led && !target_in(c, at + 8, sizeof(*c)) &&
		    c->kind < LOCK_KINDS && !c->state && (!wait || is_wait(c)))
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
	if (t->frame.rax == LOCK_BOUNDARY)
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
	return is_once(c) ? once_ask(t, c) : lock_ask(t, c);
}
