/*
 * A hooked function's call: of which kind it is, about which lock, and whether it holds that
 * when it returns.
 */
#include <linux/errno.h>

#include "engine/core/ring.h"
#include "engine/inside/order/turns.h"

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
