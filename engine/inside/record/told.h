/*
 * What a leader does around a call that followers hear of: before it is made, once it was made,
 * and when it is told.  For rows that the compiler knows (tell.c), and for all others (lead.c).
 */
#ifndef MVE_INSIDE_TOLD_H
#define MVE_INSIDE_TOLD_H

#include <linux/errno.h>

#include "engine/core/must.h"
/* Before it: what its copies are. */
#include "engine/inside/gate/memory.h"
#include "engine/core/record_row.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/lanes/edge.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/tick.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/others.h"

#define CARE_ALONE	(CARE_POLLS | CARE_PLACES | CARE_KEPT | TRAIT_INNER | TRAIT_KEPT |	\
			 TRAIT_RIGHTS)
#define CARE_BEFORE	(TRAIT_REGISTERS | CARE_GIVES | TRAITS_GONE)
#define CARE_MADE	(CARE_PLACES | CARE_CAME | TRAIT_INNER)
#define CARE_TOLD	(TRAIT_REGISTERS | TRAIT_KEPT | TRAIT_RIGHTS)

/* The call is about to be made: while it sleeps others work. */
static inline void call_lends(struct thread *t)
{
	if (in_turns() && t->baton)
		hold_lend(t);
}

static INLINE unsigned care_if_alone(unsigned care)
{
	return locks_on ? care : care & CARE_ALONE;
}

/* Something is to be done behind it; an epoll set's waits only where others made it. */
static INLINE bool care_is_told(unsigned care)
{
	return care & CARE_TOLD || (care & TRAIT_EPOLL && epoll_inherited());
}

/* A number for a call that gives and takes nothing, where there are others to give to. */
static inline uint64_t seq_before(struct thread *t, unsigned care)
{
	if (!(care & CARE_GIVES) || care & TRAIT_WAITS || !locks_on)
		return 0;
	return seq_shown(t, true, &t->shows);
}

static inline uint8_t away_in(unsigned care, uint64_t seq)
{
	return care & TRAIT_CLOCK ? 0 : seq ? AWAY_NUMBERED : AWAY;
}

/* The call is about to be made; the number that it has then, or 0. */
uint64_t care_before(struct thread *t, const struct walk *w, long nr, unsigned care);
/* It was made, and is about to be told. */
void care_made(struct thread *t, const struct walk *w, unsigned care, uint64_t seq);
/* It is told. */
void care_told(struct thread *t, const struct walk *w, long nr, unsigned care);
/* The same where nobody hears of the call. */
void care_untold(struct thread *t, const struct walk *w, long nr, unsigned care);
/* Others may have met what the call gave: it is told. */
void given(struct thread *t, const struct walk *w);
/* A signal has come in the call: followers hear of it behind its event. */
void signal_next(struct thread *t);
/* The chunk is full, or the one before was not ours. */
struct event *cell_wait(struct thread *t, long nr);

static inline void call_write(struct thread *t, const struct walk *w, long nr, uint64_t seq,
			      uint8_t flags)
{
	struct event *e = t->writer.owes ? NULL : writer_begin(&t->writer, EVENT_CALL,
							       (uint16_t)nr);

	MUST(seq);
	if (__builtin_expect(!e, 0))
		e = cell_wait(t, nr);
	e->seq = order_now(seq);
	e->result = w->result;
	e->flags = flags;
	record_call(&t->writer, w);
	if (flags & EVENT_AFTER)
		edge_write(t, e);
	if (__builtin_expect(t->pending, 0))
		signal_next(t);
	/* Behind a wait for room.  A reader goes by the last piece's flags. */
	if (in_turns() && baton_missed(t, w->desc))
		t->writer.open->flags |= EVENT_SIGNAL_NEXT;
	lane_commit(t);
}

/* What call_write_row() leaves to others: a signal, a full chunk, memory that is not there. */
void call_write_else(struct thread *t, int64_t result, uint64_t seq, uint8_t flags);

static INLINE uint64_t cell_head(const struct call_desc *d, uint8_t flags)
{
	return EVENT_HEAD(EVENT_CALL, d->nr, row_looks(d) ? flags | EVENT_LOOK : flags);
}

static INLINE struct event *cell_begin(struct writer *to, int64_t result, uint64_t seq)
{
	struct event *e = to->cell;

	e->seq = seq;
	e->result = result;
	return e;
}

/* An event of a brief row by the thread, where there is a cell; false: not so, nothing is told. */
static INLINE bool cell_write(struct thread **t, const struct walk *w, uint64_t seq, uint8_t flags,
			      const struct call_desc *d)
{
	struct writer *to = &(*t)->writer;
	struct event *e = cell_begin(to, w->result, seq);
	unsigned early;
	uint8_t *end = record_brief(e, flags, writer_end(to), w, d, &early);

	if (__builtin_expect(!end, 0))
		return false;
	/* Where memory is copied: no register need keep the thread, nor the ways that lead here. */
	if (recipe_of(d).memory) {
		__asm__("" : "+r"(end));
		*t = thread_self();
	}
	if (flags & EVENT_AFTER)
		edge_write(*t, e);
	writer_publish(&(*t)->writer, e, cell_head(d, flags), early, end);
	return true;
}

static INLINE void cells_write(struct thread *t, const struct walk *w, uint64_t seq, uint8_t flags,
			       const struct call_desc *d)
{
	struct writer *to = &t->writer;
	struct event *e = cell_begin(to, w->result, seq);

	e->head = cell_head(d, flags);
	to->open = e;
	record_row(to, w, d);
	if (flags & EVENT_AFTER)
		edge_write(t, e);
	writer_commit(to);
}

/*
 * The same where the compiler knows the row.  For one that it does not know it would make code for
 * all that rows may have: that is call_write_else()'s.
 */
static INLINE void call_write_row(struct thread *t, const struct walk *w, uint64_t seq,
				  uint8_t flags, const struct call_desc *d)
{
	/* Of `w` the address was given away: the compiler does not know its row any more. */
	const struct walk known = { .desc = d, .args = w->args, .result = w->result,
				    .room = w->room };

	if (!__builtin_constant_p(d->nr) || __builtin_expect(t->pending, 0) ||
	    !writer_is_free(&t->writer)) {
		call_write_else(t, w->result, seq, flags);
		return;
	}
	if (!row_is_brief(d)) {
		cells_write(t, &known, seq, flags, d);
	} else if (__builtin_expect(!cell_write(&t, &known, seq, flags, d), 0)) {
		call_write_else(t, w->result, seq, flags);
		return;
	}
	sleepers_look(t);
}

/*
 * The call has been made, unless a signal came first.  `row` is its row where the compiler
 * knows it, else NULL.
 */
static INLINE void call_told(struct thread *t, struct walk *w, long nr, unsigned care,
			     uint64_t seq, const struct call_desc *row)
{
	t->away = 0;
	/* Others are to work neither while it waits for room, nor on what it tells. */
	if (in_turns())
		hold_back(t);
	if (__builtin_expect(w->result == -EINTR, 0) && crash_cuts(t))
		w->result = CALL_RESTART;
	if (__builtin_expect(w->result != CALL_RESTART, 1)) {
		bool tick = care & TRAIT_CLOCK && !in_turns() && tick_begins(t, w, nr);
		bool begins = tick && tick_holder != t;
		uint8_t flags = tick ? EVENT_TICK | EVENT_CLOCK : t->shows;

		t->ticks.goes_on = tick;
		if (care & CARE_MADE)
			care_made(t, w, care, seq);
		if (begins)
			seq = tick_number(t, locks_on && !stateless);
		else if (!seq)
			seq = tick ? seq_draw() : seq_shown(t, true, &flags);
		seq = order_now(seq);
		if (care & CARE_EDGES && locks_on)
			flags |= after_others(t, w, care, seq);
		if (row)
			call_write_row(t, w, seq, flags, row);
		else
			call_write(t, w, nr, seq, flags);
		if (begins)
			tick_told(t);
		else if (flags & EVENT_TICK)
			tick_stand(t);
		if (care_is_told(care))
			care_told(t, w, nr, care);
	}
	if (seq && t->writer.lane->giving)
		given(t, w);
	else if (t->edge && w->result == CALL_RESTART)
		edge_tell(t, 0);
	if (care & TRAIT_REGISTERS)
		epoll_lead_end(t, w->result);
}

/* The same in a process with one thread, that was no follower before. */
static INLINE void call_told_alone(struct thread *t, struct walk *w, const struct call_desc *row)
{
	const unsigned care = care_of_row(row) & CARE_ALONE;
	const struct fd_row *r = care & TRAIT_CLOSES ? fd_row((int32_t)w->args[0]) : NULL;

	/* No other version's descriptors are to be thought of here (take_closing). */
	if (care & TRAITS_GONE && (!(care & TRAIT_CLOSES) || (r && fd_row_kept(r))))
		numbers_go(t, w);
	if (care & CARE_MADE)
		care_made(t, w, care, 0);
	call_write_row(t, w, ++lead_seq_now, 0, row);
	if (care_is_told(care))
		care_told(t, w, row->nr, care);
}

#endif
