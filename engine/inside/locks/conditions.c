/*
 * Waiting for a condition.  A follower does not: its thread goes on when the stream
 * says that the leader's did (follow_wait in lock_gate.S).  But a program may not
 * bear a wait that ends for no reason, so a version that comes to lead must know who
 * was woken: a wake-up of a follower's thread marks one that waits, or all of them,
 * as the kernel would have picked them.
 *
 * A thread may wait in earnest when its version comes to follow.  From then on it is one that
 * can be marked, though it has first to come out of that wait, and to begin this one (park.c);
 * one that does not sleep there may have been woken, and counts as such.
 *
 * When the process leads, a thread that was woken returns, and any other waits in
 * earnest.  Between the two it holds no mutex, and a leading thread's wake-up is
 * marked nowhere: so one whose mutex has been taken since then returns, too, as if
 * woken by chance, which happens natively.
 *
 * Marks are with the waiting thread.  They are set by others, under the mutex as a
 * rule, and cleared by itself.
 */
#include <linux/errno.h>

#include "engine/core/pairs.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/conditions.h"
#include "engine/inside/locks/lock_gate.h"
#include "engine/inside/locks/locks.h"

static bool waits_for(const struct thread *o, const struct thread *t, uint64_t condition)
{
	/* The mark is the new wait's. */
	return o != t && o->pid == t->pid &&
	       CONSUME(thread_condition, &o->condition) == condition;
}

/* Changes the mark of one other that waits for it, or of all. */
static void marks_change(const struct thread *t, uint64_t condition, uint8_t to, bool all)
{
	struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++) {
		uint8_t was = !to;

		if (waits_for(o, t, condition) &&
		    BOTH_IF(thread_woken, &o->woken, &was, to) && !all)
			return;
	}
}

long lock_wake(struct thread *t, struct lock_call *c)
{
	marks_change(t, c->arg[0], 1, c->kind == LOCK_COND_BROADCAST);
	return 0;
}

void lock_wait_goes_on(struct thread *t, uint64_t condition, bool woken)
{
	t->condition = 0;
	__atomic_store_n(&t->woken, woken, __ATOMIC_RELAXED);
	PUBLISH(thread_condition, &t->condition, condition);
}

void lock_wait_is_out(struct thread *t)
{
	t->condition = 0;
}

long lock_wait_begin(struct thread *t, struct lock_call *c)
{
	/* What has woken it since it stopped to lead counts. */
	if (t->condition != c->arg[0])
		lock_wait_goes_on(t, c->arg[0], false);
	t->mutex = c->arg[1];
	return 0;
}

/* The leader's wait has ended in this way: whose wake-up was it? */
static void mark_settle(const struct thread *t, uint64_t condition, bool woken)
{
	if (woken != t->woken)
		marks_change(t, condition, !woken, false);
}

/* The function whose board this is can be waited in: all that wakes is hooked. */
static bool wakes_are_known(const struct lock_call *c)
{
	return *(const uint64_t *)(c->board + HOOK_ERROR) != 0;
}

/* The mutex is held again; c->error is the answer to LOCK_ASK. */
long lock_wait_end(struct thread *t, struct lock_call *c)
{
	uint64_t condition = t->condition;

	t->condition = 0;
	if (c->error == ASK_LEAD)
		return wakes_are_known(c) && !t->woken &&
		       t->mutex_turn == lock_turn_last(c->arg[1]);
	if (c->error != ASK_UNORDERED)
		mark_settle(t, condition, (int32_t)c->result != ETIMEDOUT);
	return 0;
}

LEADS bool conditions_open;

void conditions_lead(struct thread *t)
{
	struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && o->condition) {
			o->mutex_turn = lock_turn_last(o->mutex);
			__atomic_store_n(&conditions_open, true, __ATOMIC_RELAXED);
		}
}

void conditions_look(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && o->condition)
			return;
	__atomic_store_n(&conditions_open, false, __ATOMIC_RELAXED);
}
