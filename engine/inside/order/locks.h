/* The order in which locks are taken: a hooked call, and what is done at one. */
#ifndef MVE_INSIDE_LOCKS_H
#define MVE_INSIDE_LOCKS_H

#include "engine/inside/gate/thread.h"
#include "engine/inside/order/lock_gate.h"

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

/* One that the gate passes on; no program can make it. */
static inline bool lock_asked(const struct thread *t)
{
	return t->frame.rax >= LOCK_CALLS && !t->frame.site_end;
}

long lock_serve(struct thread *t);
/*
 * Whether a leader's thread with this stack is within a wait for a condition: its
 * address, or 0.
 */
uint64_t lock_wait_within(uint64_t rsp);
/* A leader's thread is in a hooked function, whose event is still to be told. */
bool lock_is_led(uint64_t rsp);
/* The same on the lock gate's short way, which waits for nothing. */
long lock_took(struct thread *t, struct lock_call *c);
long lock_ask_now(struct thread *t, struct lock_call *c);
/* The last turn of the lock at this address. */
uint64_t lock_turn_last(uint64_t address);
/* The process has a second thread: from here on the order counts. */
extern uint8_t locks_on;
void locks_begin(void);
/* A forked child has one thread again. */
void locks_fork(struct thread *t);
/*
 * Turns are counted anew: in a leader that nobody else follows when somebody comes late,
 * and in whoever comes, as its first thread joins.
 */
void locks_renew(void);

extern const uint8_t lock_how_of[LOCK_KINDS];
bool lock_kind_fits(const struct event *e, uint32_t kind);
uint64_t lock_address(const struct lock_call *c);
bool lock_turn_took(const struct lock_call *c, int64_t result);

#endif
