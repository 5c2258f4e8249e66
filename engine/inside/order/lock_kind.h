/* A hooked function's call. */
#ifndef MVE_INSIDE_LOCK_KIND_H
#define MVE_INSIDE_LOCK_KIND_H

#include "engine/abi/event.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/lock_gate.h"

struct lock_call {
	uint64_t arg[4];
	uint64_t board;		/* what is called; HOOK_* around it */
	uint32_t kind, state;
	int64_t result;
	int64_t error;		/* errno, if it sets one */
	uint64_t bucket, turn;	/* for a follower */
	int64_t leaders;	/* the leader's result */
	uint32_t tries, stood;	/* see try_again */
	uint64_t pad;
};

_Static_assert(offsetof(struct lock_call, board) == L_BOARD, "L_BOARD");
_Static_assert(offsetof(struct lock_call, kind) == L_KIND, "L_KIND");
_Static_assert(offsetof(struct lock_call, state) == L_STATE, "L_STATE");
_Static_assert(offsetof(struct lock_call, result) == L_RESULT, "L_RESULT");
_Static_assert(offsetof(struct lock_call, error) == L_ERROR, "L_ERROR");
_Static_assert(sizeof(struct lock_call) == L_SIZE, "L_SIZE");

extern const uint8_t lock_how_of[LOCK_KINDS];
/* The argument that says how long it may wait; 0: none. */
extern const uint8_t lock_deadline_of[LOCK_KINDS];

static inline bool lock_is_wait(const struct lock_call *c)
{
	return lock_how_of[c->kind] == LOCK_BY_COND;
}

static inline bool lock_is_once(const struct lock_call *c)
{
	return c->kind <= LOCK_ONCE_LAST;
}

bool lock_kind_fits(const struct event *e, uint32_t kind);
/* A mutex was asked for, and not by a wait. */
bool event_is_mutex(const struct event *e);
uint64_t lock_address(const struct lock_call *c);
bool lock_turn_took(const struct lock_call *c, int64_t result);

#endif
