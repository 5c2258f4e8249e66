/*
 * A follower's thread waits for its turn at a lock.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/table.h"
#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/rewind/image.h"
#include "engine/inside/rewind/stand.h"

/* --- a hooked function's call: its kind, its lock ------------------------------------------ */

const uint8_t lock_how_of[LOCK_KINDS] = {
#define LOCK(kind, function, undo, deadline, how) [LOCK_##kind] = LOCK_BY_##how,
#include "engine/abi/locks.def"
};

const uint8_t lock_deadline_of[LOCK_KINDS] = {
#define LOCK(kind, function, undo, deadline, how) [LOCK_##kind] = deadline,
#include "engine/abi/locks.def"
};

/* Whether a follower's call is the one that an event tells of; waits are all alike. */
bool lock_kind_fits(const struct event *e, uint32_t kind)
{
	return e->kind == EVENT_LOCK &&
	       (e->call == kind || (e->call < LOCK_KINDS && lock_how_of[e->call] == LOCK_BY_COND &&
				    lock_how_of[kind] == LOCK_BY_COND));
}

bool event_is_mutex(const struct event *e)
{
	return e->kind == EVENT_LOCK && e->call > LOCK_COND_LAST &&
	       e->call <= LOCK_MUTEX_CLOCKLOCK;
}

uint64_t lock_address(const struct lock_call *c)
{
	return c->arg[lock_is_wait(c)];
}

/* Does a call with this result hold the lock? */
bool lock_turn_took(const struct lock_call *c, int64_t result)
{
	int32_t r = (int32_t)result;

	switch (lock_how_of[c->kind]) {
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

/* --- turns -------------------------------------------------------------------------------- */

struct bucket lock_buckets[LOCK_BATON_BUCKET + 1];

#define WAKE_BITS	32	/* turns that are told apart by who sleeps for them */
#define ENDED_SHIFT	5	/* of a limit, where there will be no more events */
#define IDLE_SHARE	20	/* it uses less than one part in so many of a processor */
#define FUTILE_MOST	6
#define MUTEX_OWNER	8	/* in glibc's pthread_mutex_t, whose first word is the futex */

#define GIVE_UP		3	/* after so many a lock is not ordered any more */

uint32_t lock_progress;	/* turns that came */
static uint32_t noted;

/* --- whether the process goes on by itself ------------------------------------------------ */

/* All that the process' threads have done that others could wait for. */
static uint64_t moves_of(const struct thread *t)
{
	uint64_t moves = __atomic_load_n(&lock_progress, __ATOMIC_RELAXED);
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		/* One that is being made has none. */
		const struct slot *s = __atomic_load_n(&o->slot, __ATOMIC_RELAXED);

		if (o->pid == t->pid && s)
			moves += __atomic_load_n(&s->calls, __ATOMIC_RELAXED) +
				 __atomic_load_n(&s->taken, __ATOMIC_RELAXED);
	}
	return moves;
}

/* What another does is not said by what it waits for. */
static bool is_unknown(const struct thread *o, const struct thread *t)
{
	return o != t && o->pid == t->pid && o->following && o->has_lane && !order_stands_till(o);
}

/* Its event is there, and it is woken; or it waits for the monitor. */
static bool goes_on(const struct thread *o)
{
	uint32_t waits = CONSUME(thread_waits, &o->waits);

	return (waits && waits != WAITS_ASLEEP) || request_awaited(o);
}

static bool others_go_on(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (is_unknown(o, t) && goes_on(o))
			return true;
	return false;
}

/*
 * What its threads wait for they say; of one that says nothing the monitor sees whether it wants a
 * processor.  But it may want one, too, and see that late: its word holds where nobody has done
 * anything since it was asked for.
 */
bool order_others_able(struct thread *t)
{
	uint64_t moves = moves_of(t);
	const struct thread *o;

	if (others_go_on(t))
		return true;
	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (is_unknown(o, t) && request_runs(t, o) > 0)
			return true;
	return others_go_on(t) || moves != moves_of(t);
}

static void idling_begin(struct idling *p)
{
	p->since = clock_ns(CLOCK_MONOTONIC);
	p->cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

bool idling_over(struct thread *t, struct idling *p)
{
	const uint32_t progress = __atomic_load_n(&lock_progress, __ATOMIC_RELAXED);
	uint64_t now, cpu;

	/* While others go on, as in most waits, no clock is read: each is a call. */
	if (p->progress != progress) {
		p->progress = progress;
		p->since = 0;
		return false;
	}
	if (!p->since) {
		idling_begin(p);
		return false;
	}
	now = clock_ns(CLOCK_MONOTONIC);
	if (now - p->since < wait_limit(p->kind))
		return false;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - p->cpu;
	if (cpu < (now - p->since) / IDLE_SHARE && !order_others_able(t)) {
		wait_note(p->kind, now - p->since, true);
		return true;
	}
	idling_begin(p);
	return false;
}

static bool source_ended(const struct thread *t)
{
	uint32_t ended = __atomic_load_n(&streams.conduct->ended, __ATOMIC_RELAXED);

	return ended >> t->reader.cursor->source & 1;
}

bool lock_is_wanted(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		uint64_t mutex = CONSUME(want_mutex, &o->want_mutex);
		int32_t owner = 0;

		if (o != t && o->pid == t->pid && mutex &&
		    !target_in(&owner, mutex + MUTEX_OWNER, sizeof(owner)) && owner == t->vtid)
			return true;
	}
	return false;
}

/* Waits that came to nothing.  Where the order is lost, each further one is shorter. */
static uint32_t futile;

uint64_t lock_stood_most(const struct thread *t)
{
	uint32_t times = __atomic_load_n(&futile, __ATOMIC_RELAXED) / GIVE_UP;

	return wait_limit(WAIT_stood) >> (source_ended(t) ? ENDED_SHIFT : 0) >>
	       (times < FUTILE_MOST ? times : FUTILE_MOST);
}

void lock_futile_note(uint64_t ns)
{
	wait_note(WAIT_stood, ns, true);
	__atomic_fetch_add(&futile, 1, __ATOMIC_RELAXED);
}

static bool tells_turn(const struct event *e, uint64_t bucket)
{
	return bucket == LOCK_BATON_BUCKET ? event_is_turn(e)
					   : e->kind == EVENT_LOCK && event_bucket(e) == bucket;
}

/* The lane's unread events that have turns of the bucket between the two. */
static uint64_t turns_unread(const struct thread *o, uint64_t bucket, uint64_t done, uint64_t turn)
{
	struct reader r;
	uint64_t n = 0;

	if (!reader_attach_other(&r, &streams, o->lane))
		return turn;	/* it moves */
	for (const struct event *e = reader_look(&r); e; e = reader_next(&r))
		n += tells_turn(e, bucket) && event_turn(e) > done && event_turn(e) < turn;
	return n;
}

/*
 * A turn before ours has yet to be told: who drew it has lost its processor before that, and
 * whoever took another lock of the bucket has told of a later one.
 */
bool turns_are_untold(const struct thread *t)
{
	uint64_t turn = CONSUME(want_turn, &t->want_turn), bucket = t->want_bucket, done, told = 0;
	const struct thread *o;

	if (!turn)
		return false;
	done = LOOK(turn, &lock_buckets[bucket].turn);
	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		if (o == t || o->pid != t->pid || !o->following || !o->has_lane)
			continue;
		told += turns_unread(o, bucket, done, turn);
		/* It has taken its event, and not done its turn. */
		told += CONSUME(thread_turning, &o->turning);
	}
	return turn - 1 > done + told;
}

/*
 * Whether to go on without the turn.  Its event is told before those that are drawn
 * behind it, but for the moment between the two: where every thread waits for
 * another, and one for us, it will not come.  One that waits in a place that we do
 * not know may go on, until it is found that it does not.
 */
bool lock_is_hopeless(struct thread *t, struct idling *p)
{
	uint64_t now;

	if (!p->sleep)
		return false;
	if (!lock_is_wanted(t) || !order_all_stand(t)) {
		p->stood = 0;
		return idling_over(t, p);
	}
	now = clock_ns(CLOCK_MONOTONIC);
	if (!p->stood)
		p->stood = now;
	if (now - p->stood <= lock_stood_most(t))
		return false;
	/* The leader brings it, or is late with that for as long as it is with nothing else. */
	if (turns_are_untold(t))
		return idling_over(t, p);
	lock_futile_note(now - p->stood);
	return true;
}

void lock_given_up(struct thread *t, uint64_t address)
{
	image_lost(t, LOSS_TURN, address);
	if (!__atomic_exchange_n(&noted, 1, __ATOMIC_RELAXED))
		request_ask(t, REQ_NOTE, NOTE_LOCK_ORDER, address, 0);
}

bool turn_is_here(const struct bucket *b, uint64_t turn)
{
	/* What was done before it is seen. */
	return (int64_t)(LOOK(turn, &b->turn) - (turn - 1)) >= 0;
}

/*
 * A step of waiting that needs nobody to wake us.  The processor is not yielded: on a
 * busy machine that is as long as all others' slices of it, and who is woken comes first.
 */
static bool wait_awake(struct idling *p)
{
	if (p->looks >= TURN_SPINS)
		return false;
	p->looks++;
	__builtin_ia32_pause();
	return true;
}

/* One for *word to change, longer each time. */
void turn_wait_step(uint32_t *word, uint32_t seen, uint32_t bits, struct idling *p)
{
	struct __kernel_timespec until;
	uint64_t end;

	if (wait_awake(p))
		return;
	p->sleep = p->sleep ? pause_longer(p->sleep) : PAUSE_FIRST_NS;
	end = clock_ns(CLOCK_MONOTONIC);
	if (!p->begun)
		p->begun = end;
	end += p->sleep;
	until = (struct __kernel_timespec){ (long long)(end / SECOND_NS),
					    (long long)(end % SECOND_NS) };
	OWN6(__NR_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, &until, 0, bits);
}

static uint32_t wake_bit(uint64_t turn)
{
	return 1u << turn % WAKE_BITS;
}

static void turn_look(struct bucket *b, uint64_t turn, struct idling *p)
{
	uint32_t seen;

	if (wait_awake(p))
		return;
	ANNOUNCE_BY(turn, fetch_add, &b->waiters, 1);
	seen = (uint32_t)LOOK(turn, &b->turn);
	if (!turn_is_here(b, turn))
		turn_wait_step((uint32_t *)&b->turn, seen, wake_bit(turn), p);
	__atomic_fetch_sub(&b->waiters, 1, __ATOMIC_RELAXED);
}

void turn_wait(struct thread *t, uint64_t bucket, uint64_t turn, uint64_t address)
{
	struct bucket *b = &lock_buckets[bucket];
	struct idling p = { .kind = WAIT_turn };

	MUST(bucket <= LOCK_BATON_BUCKET && turn);
	if (turn_is_here(b, turn) || b->given_up >= GIVE_UP)
		return;
	t->want_bucket = (uint32_t)bucket;
	t->want_turn = turn;
	/* Who sees that it waits sees for what (lock_stands). */
	PUBLISH(thread_taking, &t->taking, 1);
	while (!turn_is_here(b, turn)) {
		if (stand_look(t))
			p = (struct idling){ .kind = WAIT_turn };
		turn_look(b, turn, &p);
		if (!turn_is_here(b, turn) && lock_is_hopeless(t, &p)) {
			lock_given_up(t, address);
			b->given_up++;
			break;
		}
	}
	if (p.begun)
		wait_note(WAIT_turn, clock_ns(CLOCK_MONOTONIC) - p.begun, false);
	t->taking = 0;
	PUBLISH(want_turn, &t->want_turn, 0);
}

/* The thread waits for a turn that has not come, or for a mutex that somebody holds. */
bool lock_stands(const struct thread *o)
{
	uint64_t turn = CONSUME(want_turn, &o->want_turn);
	uint64_t mutex = CONSUME(want_mutex, &o->want_mutex);
	int32_t owner = 0;

	MUST(o->want_bucket <= LOCK_BATON_BUCKET);

	if (turn)
		return !turn_is_here(&lock_buckets[o->want_bucket], turn);
	/* Its own: it has just got it.  Without an owner it is about to be free, or taken. */
	return mutex && !target_in(&owner, mutex + MUTEX_OWNER, sizeof(owner)) && owner &&
	       owner != o->vtid;
}

/* Never back: a thread that did not wait for its turn may come late. */
void turn_done(uint64_t bucket, uint64_t turn)
{
	struct bucket *b = &lock_buckets[bucket];
	uint64_t now = __atomic_load_n(&b->turn, __ATOMIC_RELAXED);
	uint32_t next;

	while ((int64_t)(turn - now) > 0 &&
	       !ANNOUNCE_IF(turn, &b->turn, &now, turn))
		;
	/* Some may get lost: it only has to change. */
	__atomic_store_n(&lock_progress, lock_progress + 1, __ATOMIC_RELAXED);
	/* The next one alone, unless some were passed over. */
	next = now + 1 == turn ? wake_bit(turn + 1) : FUTEX_BITSET_MATCH_ANY;
	if (LOOK(turn, &b->waiters))
		OWN6(__NR_futex, &b->turn, FUTEX_WAKE_BITSET_PRIVATE, 0x7fffffff, 0, 0, next);
}

/* The stream is another's memory: a bucket that is none has no turn, nor has a turn 0. */
uint64_t event_bucket(const struct event *e)
{
	uint64_t bucket = __atomic_load_n(&e->arg[0], __ATOMIC_RELAXED);

	return bucket <= LOCK_BATON_BUCKET ? bucket : LOCK_NO_TURN;
}

/* Turns count from 1. */
uint64_t event_turn(const struct event *e)
{
	uint64_t turn = __atomic_load_n(&e->arg[1], __ATOMIC_RELAXED);

	return turn ? turn : 1;
}

bool event_has_turn(const struct event *e)
{
	return e->kind == EVENT_LOCK && event_bucket(e) < LOCK_BUCKETS;
}

void lock_passed(struct thread *t, const struct event *e)
{
	uint64_t bucket = event_bucket(e), turn = event_turn(e);

	if (e->kind != EVENT_LOCK || bucket == LOCK_NO_TURN)
		return;
	order_turn_begin(t, e);
	turn_wait(t, bucket, turn, e->arg[2]);
	turn_done(bucket, turn);
	order_turn_done(t);
}

/* Does another thread wait for a lock that this one may hold? */
static bool others_take(const struct thread *t)
{
	for (uint32_t i = 0; i < AREA_THREADS; i++) {
		const struct thread *o = block_live(i);

		/* What it waits for is seen by who asks for that. */
		if (o && o != t && o->pid == t->pid &&
		    CONSUME(thread_taking, &o->taking))
			return true;
	}
	return false;
}

/* It may be that the leader takes no such lock, and tells of none. */
bool lock_may_be_over(const struct lock_call *c)
{
	return lock_how_of[c->kind] == LOCK_BY_PLAIN || lock_how_of[c->kind] == LOCK_BY_TRY;
}

/* No event is to be waited for any more. */
enum over lock_wait_over(void *what)
{
	struct wanted *w = what;

	if (!others_take(w->t) && !lock_is_wanted(w->t)) {
		w->idling.since = 0;
		return OVER_PERHAPS;
	}
	return idling_over(w->t, &w->idling) ? OVER_YES : OVER_PERHAPS;
}

void locks_begin(void)
{
	locks_on = 1;
	locks_led_set();
	tell_stop(TELL_THREADS);
}

void locks_fork(struct thread *t)
{
	bool on = locks_on;

	(void)t;
	if (on) {
		locks_on = 0;
		locks_led_set();
		tell_go(TELL_THREADS);
	}
	/* Nobody waits where no order is kept, and fifteen pages need not be looked at. */
	for (uint32_t i = 0; on && i <= LOCK_BATON_BUCKET; i++)
		if (lock_buckets[i].waiters)
			lock_buckets[i].waiters = 0;
}

void locks_renew(void)
{
	for (uint32_t i = 0; i <= LOCK_BATON_BUCKET; i++) {
		ANNOUNCE(turn, &lock_buckets[i].turn, 0);
		lock_buckets[i].given_up = 0;
	}
}

uint64_t lock_turn_last(uint64_t address)
{
	return __atomic_load_n(&lock_buckets[lock_bucket_at(address)].turn, __ATOMIC_RELAXED);
}
