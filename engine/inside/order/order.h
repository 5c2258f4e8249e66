/* Order across the threads of a follower, and forks. */
#ifndef MVE_INSIDE_ORDER_H
#define MVE_INSIDE_ORDER_H

#include "engine/abi/waits.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/rewind/image.h"

void order_forked(void);
void order_fork(struct thread *t);
/* The thread has no event: others that wait for what it does may go on. */
void order_rests(void);
void order_wait_fork(struct thread *t, uint64_t seq);
/* The event of a lock's turn is about to be taken; and the turn is done. */
void order_turn_begin(struct thread *t, const struct event *e);
void order_turn_done(struct thread *t);
/* It would wait: a fork is to come first. */
bool order_is_before_fork(uint64_t seq);
/* The event is a call that its thread makes: where a time is over, all is done that was before. */
void order_wait_slept(struct thread *t, const struct event *e);
/* The thread has come to an event, or taken one: others may wait for that. */
void order_step(const struct thread *t);
void order_wait_all(struct thread *t, uint64_t seq);
/* All that the leader told before has been taken, by whichever thread. */
void order_wait_all_told(struct thread *t, uint64_t seq);
/* No other thread of the process will go on by itself. */
bool order_all_stand(const struct thread *t);
/* Another thread of the process would go on by itself, if that, or the monitor, had a processor. */
bool order_others_able(struct thread *t);
bool order_sleeper_behind(const struct thread *t);
/* Nothing but queries and clocks is left in the thread's lane. */
bool order_only_looks(const struct thread *o);
/* All threads of the process have read the thread's stream to its end. */
void order_wait_ended(struct thread *t);

bool order_is_behind(uint64_t seq, uint64_t than);
bool order_wait_while(struct thread *t, uint64_t seq, order_test *what, enum wait_kind kind);
/* Whether a stream goes on, sooner or later, in another. */
bool order_leads_to(uint32_t source, uint32_t to);
/* It does not sleep until another wakes it. */
bool order_is_awake(const struct thread *o);
bool order_stands_till(const struct thread *o);
/* It runs in the program, with what it was told before the number, or will when it has its lock. */
bool order_is_at_work(const struct thread *o, uint64_t seq);
/* It waits for an event, and has been told nothing that it has not met. */
bool order_waits_for_more(const struct thread *o);
/* The thread goes from the gate to its work, with what it has been told. */
void order_works(struct thread *t);
/* What o works on it came to the gate for while t stood, or later. */
bool order_works_since(const struct thread *o, const struct thread *t);
/* It has yet to come to where that is done. */
bool order_is_behind_of(const struct thread *o, const struct thread *t, uint64_t seq);
const struct thread *order_is_thread_behind(const struct thread *t, uint64_t seq);
const struct thread *order_awake_behind(const struct thread *t, uint64_t seq);
const struct thread *order_others_busy(const struct thread *t, uint64_t seq);
bool order_wait_for_awake(struct thread *t, uint64_t seq, order_test *what,
			  order_test *awake, enum wait_kind kind);

/* --- again.c: what is met again, in a version that has gone back to its image ---------- */

void again_met(struct thread *t, const struct event *e);
void again_left(struct thread *t);
bool again_passed(const struct thread *t, const struct event *e);

/* The thread is about to take the event. */
static inline void again_meet(struct thread *t, const struct event *e)
{
	if (__builtin_expect(image_tries(), 0))
		again_met(t, e);
}

/* Its leader's thread may not have stood while another wrote a clock's second down. */
static inline bool again_passes(const struct thread *t, const struct event *e)
{
	return __builtin_expect(image_tries(), 0) && again_passed(t, e);
}

/* The thread is about to go back to the program. */
static inline void again_leave(struct thread *t)
{
	if (__builtin_expect(image_tries(), 0))
		again_left(t);
}

#endif
