/*
 * What is run once by whoever comes first: the leader's thread.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/abi/table.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/lock_gate.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/locks/once.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/rewind/stand.h"

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

static enum over no_wait(void *what)
{
	(void)what;
	return OVER_YES;
}

/*
 * This thread is to run it only if the leader's did: then all that the leader ran
 * before has begun here, and this has not.
 */
static bool once_is_ours(const struct lock_call *c, const struct event *e)
{
	return e && e->kind == EVENT_LOCK && e->call == c->kind &&
	       turn_is_here(&lock_buckets[LOCK_ONCE_BUCKET], e->arg[1]) && !*once_word(c);
}

/* The turn is over when the control shows that it has begun, not before. */
bool once_turn_end(struct thread *t)
{
	if (!t->once_turn)
		return false;
	turn_done(LOCK_ONCE_BUCKET, t->once_turn);
	t->once_turn = 0;
	return true;
}

long once_ask(struct thread *t, struct lock_call *c)
{
	struct idling p = { .kind = WAIT_once };

	once_turn_end(t);
	for (;;) {
		uint32_t seen = CONSUME(once_word, once_word(c));
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
		if (stand_look(t))
			p = (struct idling){ .kind = WAIT_once };
		turn_wait_step(once_word(c), seen, FUTEX_BITSET_MATCH_ANY, &p);
		if (p.sleep && idling_over(t, &p)) {
			lock_given_up(t, c->arg[0]);
			return ASK_UNORDERED;
		}
	}
}
