/* A call of a lock's function, and how a follower's thread waits for its turn at it. */
#ifndef MVE_INSIDE_TURNS_H
#define MVE_INSIDE_TURNS_H

#include "engine/abi/event.h"
#include "engine/abi/waits.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/locks/lock_gate.h"
#include "engine/inside/order/wait.h"

/* A hooked function's call. */
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

/* The process has a second thread: from here on the order counts (locks_on). */
void locks_begin(void);
/* A forked child has one thread again. */
void locks_fork(struct thread *t);
/*
 * Turns are counted anew: in a leader that nobody else follows when somebody comes late,
 * and in whoever comes, as its first thread joins.
 */
void locks_renew(void);
static inline uint64_t lock_bucket_at(uint64_t address)
{
	return address * 0x9e3779b97f4a7c15ull >> (64 - __builtin_ctz(LOCK_BUCKETS));
}
/* The last turn of the lock at this address. */
uint64_t lock_turn_last(uint64_t address);
/* The thread waits for a turn that has not come, or for a mutex that somebody holds. */
bool lock_stands(const struct thread *o);
/* It waits for a turn, and one before that has yet to be told. */
bool turns_are_untold(const struct thread *t);
/* Its turn was drawn before its number (what runs once has its number first). */
bool event_has_turn(const struct event *e);
/* An EVENT_LOCK that this version does not ask for is about to be taken. */
void lock_passed(struct thread *t, const struct event *e);

#define TURN_SPINS		200	/* looks at a turn before the thread sleeps */

/* A wait in a process whose threads may wait for each other. */
struct idling {
	enum wait_kind kind;
	uint64_t begun, since, cpu, stood;
	uint32_t progress;
	uint32_t looks;
	uint64_t sleep;
};

struct wanted {
	struct thread *t;
	const struct lock_call *call;
	struct idling idling;
};

struct bucket {
	uint64_t turn;		/* the last that was drawn, or is done */
	uint32_t waiters;
	uint32_t given_up;	/* turns that never came */
	uint64_t line[6];
};
extern struct bucket lock_buckets[LOCK_BATON_BUCKET + 1];

extern uint32_t lock_progress;	/* turns that came */
/* For so long no turn has come, and no thread of the process did anything, or could. */
bool idling_over(struct thread *t, struct idling *p);
uint64_t lock_stood_most(const struct thread *t);
void lock_futile_note(uint64_t ns);
/* Another thread wants a mutex that this one holds. */
bool lock_is_wanted(const struct thread *t);
bool lock_is_hopeless(struct thread *t, struct idling *p);
void lock_given_up(struct thread *t, uint64_t address);
bool turn_is_here(const struct bucket *b, uint64_t turn);
void turn_wait_step(uint32_t *word, uint32_t seen, uint32_t bits, struct idling *p);
void turn_wait(struct thread *t, uint64_t bucket, uint64_t turn, uint64_t address);
void turn_done(uint64_t bucket, uint64_t turn);
/* A leader's: the next one. */
static inline uint64_t turn_draw(uint64_t bucket)
{
	return ANNOUNCE_BY(turn, add_fetch, &lock_buckets[bucket].turn, 1);
}
uint64_t event_bucket(const struct event *e);
uint64_t event_turn(const struct event *e);
bool lock_may_be_over(const struct lock_call *c);
enum over lock_wait_over(void *what);

#endif
