/* Events: their numbers in the order of the process, and how one is written. */
#ifndef MVE_INSIDE_EVENT_H
#define MVE_INSIDE_EVENT_H

#include "engine/core/pairs.h"
#include "engine/core/recipe.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/lanes/tick.h"

/*
 * A leader's: the last number of its process's events.  How often the process has forked, modulo
 * 2^16, is above it, in followers, too: what is drawn is a number of the stream.
 */
extern uint64_t lead_seq_now;

/* One that was drawn before, as a number of the stream: the process may have forked since. */
static inline uint64_t order_now(uint64_t seq)
{
	return (__atomic_load_n(&lead_seq_now, __ATOMIC_RELAXED) & ~ORDER_MASK) |
	       (seq & ORDER_MASK);
}

/* The process has a second thread: what it tells has an order. */
extern uint8_t locks_on;
/* One of them works at a time (order/baton.c). */
static inline bool in_turns(void)
{
	return streams.conduct->one_at_a_time;
}

/* The same, and somebody may follow: the lock gate takes part. */
extern uint8_t locks_led;

/* Behind each change of one of them. */
static inline void locks_led_set(void)
{
	__atomic_store_n(&locks_led, locks_on && !quiet_on && !in_turns(), __ATOMIC_RELAXED);
}

static inline uint64_t seq_draw(void)
{
	/* Alone, nobody else draws one. */
	if (__builtin_expect(!locks_on, 0))
		return ++lead_seq_now;
	return __atomic_add_fetch(&lead_seq_now, 1, __ATOMIC_RELAXED);
}

/* A new one. */
uint64_t lead_seq(void);

/* Others may meet what the call gives before it is told: it has this number. */
static inline void giving_set(struct thread *t, uint64_t seq)
{
	/* The call is still to be made. */
	PUBLISH(lane_giving, &t->writer.lane->giving, (uint32_t)seq | !(uint32_t)seq);
}

static inline void giving_end(struct thread *t)
{
	/* The event is published. */
	PUBLISH(lane_giving, &t->writer.lane->giving, 0);
}

/* Behind all that has been told so far, but with no number of its own. */
uint64_t lead_seq_shown(struct thread *t, uint8_t *flags);
/* more: another comes at once, before the handler's first instruction. */
void lead_signal(struct thread *t, const uint8_t *info, uint8_t flags);
/* An event of a call that was made. */
void call_tell(struct thread *t, const struct walk *w, long nr);
/* An event of no call. */
void lead_note(struct thread *t, enum event_kind kind, uint64_t value);
/* An event of no call with a payload, piece by piece. */
struct event *lead_event(struct thread *t, enum event_kind kind, long nr, int64_t result);
void payload_tell(struct thread *t, const void *bytes, size_t size);
void lead_event_end(struct thread *t);

/* What each told call goes through is one stretch of code: half of it would be frames. */

/*
 * A number for an event, its own or the last one, and whether that shows a tick: none comes
 * between the two.
 */
static INLINE uint64_t seq_shown(struct thread *t, bool own, uint8_t *flags)
{
	uint64_t seq;
	uint32_t now;

	do {
		now = tick_now();
		seq = own ? seq_draw() : CONSUME(lead_seq, &lead_seq_now);
	} while (now != CONSUME(ticks, &ticks));
	*flags = tick_shown(t, now);
	return seq;
}

/* With the number that was drawn for it, or a new one. */
static INLINE struct event *event_begin_at(struct thread *t, enum event_kind kind, long nr,
				    int64_t result, uint64_t seq)
{
	struct event *e = writer_begin(&t->writer, kind, (uint16_t)nr);

	if (!e)
		e = host_begin(&t->writer, kind, (uint16_t)nr);
	e->seq = order_now(seq ? seq : seq_draw());
	e->result = result;
	return e;
}

static INLINE void event_end(struct thread *t)
{
	if (t->pending) {
		t->writer.open->flags |= EVENT_SIGNAL_NEXT;
		t->announced = 1;
	}
	lane_commit(t);
}

static INLINE void call_tell_at(struct thread *t, const struct walk *w, long nr, uint64_t seq,
			 uint8_t flags)
{
	event_begin_at(t, EVENT_CALL, nr, w->result, seq)->flags = flags;
	record_call(&t->writer, w);
	event_end(t);
}

struct event *event_begin(struct thread *t, enum event_kind kind, long nr, int64_t result);

#endif
