/*
 * What orders threads and processes by memory alone.  All of it goes through here, so that
 * the kind of order stands in the name; a __atomic elsewhere is __ATOMIC_RELAXED: a count, a
 * flag, a look at what only this thread writes.
 *
 * A pair is a word in memory and what it promises: who sees a value there sees all that
 * was done before that value was put there.  Its row in pairs.def gives it a name, by which
 * both sides call it:
 *
 *	PUBLISH(lane_head, &l->head, head);	done before it: writing the event
 *	head = CONSUME(lane_head, &l->head);	behind it: reading the event
 *
 * A word that is read and written in one step has an operation of the compiler's
 * (PUBLISH_BY(x, fetch_or, &word, bit)), or is written if it is still what it was
 * (CONSUME_IF(x, &word, &was, to): true if so, else `was` is what stands there).  Such a step
 * is one side of the pair, or BOTH.
 *
 * In a handshake two write a word each, and then look at the other's: at least one of them
 * sees what the other wrote.  Pairs do not promise that: each may have looked before its own
 * write can be seen.
 *
 *	ANNOUNCE_BY(turn, fetch_add, &b->waiters, 1);	ANNOUNCE_IF(turn, &b->turn, &was, to);
 *	if (!is_here(LOOK(turn, &b->turn)))		if (LOOK(turn, &b->waiters))
 *		sleep();					wake();
 *
 * Where one of the two is not to pay for that (a leader at each event), the other pays for
 * both: between its write and its look it has the kernel put a barrier into whatever runs of
 * the first (membarrier(2)).  Either that one's look was behind the barrier, and finds what was
 * written, or its own write was before it, and is found:
 *
 *	HEAVY(sleeper, &s->asleep, odd, everyones_barrier());	PUBLISH(lane_head, &l->head, head);
 *	if (!reader_peek(r))					if (LIGHT(sleeper, &s->asleep))
 *		sleep();						wake();
 *
 * tools/pairs looks that each has both its sides, and that they are about the same word.
 */
#ifndef MVE_CORE_PAIRS_H
#define MVE_CORE_PAIRS_H

/* A name without a row, or a handshake's for a pair, does not compile. */
enum {
#define PAIR(name, ...) PAIR_##name,
#define PASSED(name, ...) PAIR_##name,
#define HALF(name, ...) PAIR_##name,
#define HANDSHAKE(name, ...) HANDSHAKE_##name,
#define UNEQUAL(name, ...) UNEQUAL_##name,
#include "engine/core/pairs.def"
};

_Static_assert(__GCC_ATOMIC_LLONG_LOCK_FREE == 2, "each word is written in one piece");

#define PAIR_CAS(at, was, to, order, order_else) \
	__atomic_compare_exchange_n(at, was, to, 0, order, order_else)

#define PUBLISH(name, at, value) \
	((void)PAIR_##name, __atomic_store_n(at, value, __ATOMIC_RELEASE))
#define PUBLISH_BY(name, op, at, value) \
	((void)PAIR_##name, __atomic_##op(at, value, __ATOMIC_RELEASE))
#define PUBLISH_IF(name, at, was, to) \
	((void)PAIR_##name, PAIR_CAS(at, was, to, __ATOMIC_RELEASE, __ATOMIC_RELAXED))

#define CONSUME(name, at) \
	((void)PAIR_##name, __atomic_load_n(at, __ATOMIC_ACQUIRE))
#define CONSUME_BY(name, op, at, value) \
	((void)PAIR_##name, __atomic_##op(at, value, __ATOMIC_ACQUIRE))
#define CONSUME_IF(name, at, was, to) \
	((void)PAIR_##name, PAIR_CAS(at, was, to, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))

/* Sees what was done before the value that it finds, and publishes its own. */
#define BOTH_BY(name, op, at, value) \
	((void)PAIR_##name, __atomic_##op(at, value, __ATOMIC_ACQ_REL))
#define BOTH_IF(name, at, was, to) \
	((void)PAIR_##name, PAIR_CAS(at, was, to, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))

/*
 * For what is read while it may be written anew: its writer withdraws the word, writes, and
 * publishes again; who has consumed the word, and has read, looks whether it is still the same.
 */
#define WITHDRAW(name, at, value) \
	do { \
		(void)PAIR_##name; \
		__atomic_store_n(at, value, __ATOMIC_RELAXED); \
		__atomic_thread_fence(__ATOMIC_RELEASE); \
	} while (0)
#define CONSUME_AGAIN(name, at) \
	((void)PAIR_##name, __atomic_thread_fence(__ATOMIC_ACQUIRE), \
	 __atomic_load_n(at, __ATOMIC_RELAXED))

#define ANNOUNCE(name, at, value) \
	((void)HANDSHAKE_##name, __atomic_store_n(at, value, __ATOMIC_SEQ_CST))
#define ANNOUNCE_BY(name, op, at, value) \
	((void)HANDSHAKE_##name, __atomic_##op(at, value, __ATOMIC_SEQ_CST))
#define ANNOUNCE_IF(name, at, was, to) \
	((void)HANDSHAKE_##name, PAIR_CAS(at, was, to, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
#define LOOK(name, at) \
	((void)HANDSHAKE_##name, __atomic_load_n(at, __ATOMIC_SEQ_CST))

#define HEAVY(name, at, value, barrier) \
	((void)UNEQUAL_##name, __atomic_store_n(at, value, __ATOMIC_RELAXED), (barrier))
/* The compiler, too, leaves it behind what was written. */
#define LIGHT(name, at) \
	((void)UNEQUAL_##name, __atomic_signal_fence(__ATOMIC_SEQ_CST), \
	 __atomic_load_n(at, __ATOMIC_RELAXED))

#endif
