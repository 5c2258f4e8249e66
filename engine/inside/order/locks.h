/*
 * What lock_gate.S and locks.c share: a hooked call on the program's stack, and the
 * numbers of the calls that the lock gate makes of the gate.
 */
#ifndef MVE_INSIDE_LOCKS_H
#define MVE_INSIDE_LOCKS_H

#include "engine/abi/locks.h"

/* Numbers beyond the table's; from the inside only: see lock_asked(). */
#define LOCK_CALLS	500
#define LOCK_ASK	500	/* a follower, before it calls the function */
#define LOCK_TOOK	501	/* the function has returned */
#define LOCK_BOUNDARY	502	/* a signal waits */

/* Answers to LOCK_ASK. */
#define ASK_ORDERED	0	/* call it, and say LOCK_TOOK */
#define ASK_LEAD	1	/* this thread leads now */
#define ASK_UNORDERED	2	/* call it; the stream knows nothing of it */
#define ASK_GIVEN	3	/* return the leader's result */
#define ASK_SLOW	4	/* it must be waited for */

/* Answers to LOCK_TOOK. */
#define TOOK_DONE	0
#define TOOK_AGAIN	1	/* call it again */
#define TOOK_REDO	2	/* this thread follows now: give it up, and ask */
#define TOOK_ASK	3	/* the same, with nothing to give up */

/* Offsets in struct lock_call. */
#define L_ARG		0
#define L_BOARD		32
#define L_KIND		40
#define L_STATE		44
#define L_RESULT	48
#define L_ERROR		56
#define L_SIZE		104	/* with the return address, a multiple of 16 */

#define STATE_ASKED	1
#define STATE_KEPT	2	/* a wait that could not give the mutex up */
#define STATE_SIGNAL	4	/* the leader's handler ran behind it */
#define STATE_OWN	8	/* the stream knows nothing of it: its own result counts */

#ifndef __ASSEMBLER__
#include "engine/inside/stream.h"

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
/* The thread waits for a turn that has not come, or for a mutex that somebody holds. */
bool lock_stands(const struct thread *o);
/* The last turn of the lock at this address. */
uint64_t lock_turn_last(uint64_t address);

/* conditions.c, on the short way, too; 1: the wait is to be made in earnest. */
long lock_wait_begin(struct thread *t, struct lock_call *c);
long lock_wait_end(struct thread *t, struct lock_call *c);
long lock_wake(struct thread *t, struct lock_call *c);
/* The process is about to lead. */
void conditions_lead(const struct thread *t);

/* An EVENT_LOCK that this version does not ask for is about to be taken. */
void lock_passed(struct thread *t, const struct event *e);
/* The process has a second thread: from here on the order counts. */
extern uint8_t locks_on;
void locks_begin(void);
/* A forked child has one thread again. */
void locks_child(void);
/*
 * Turns are counted anew: in a leader that nobody else follows when somebody comes late,
 * and in whoever comes, as its first thread joins.
 */
void locks_renew(void);

#endif
#endif
