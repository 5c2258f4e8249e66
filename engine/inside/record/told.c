/*
 * What only some calls need around them, in a leader; and what an event seldom needs.
 */
#include <linux/stat.h>

#include "engine/core/must.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/fd/places.h"
#include "engine/inside/realm/realm.h"
#include "engine/inside/record/told.h"
#include "engine/inside/state/state.h"

uint64_t care_before(struct thread *t, const struct walk *w, long nr, unsigned care)
{
	uint64_t seq = seq_before(t, care);

	if (care & TRAITS_GONE)
		numbers_go(t, w);
	if (care & TRAIT_REGISTERS)
		epoll_lead(t, (uint64_t *)w->args, nr);
	giving_begin(t, w, care, seq);
	return seq;
}

void care_made(struct thread *t, const struct walk *w, unsigned care, uint64_t seq)
{
	MUST(w->result != CALL_RESTART);
	if (care & CARE_PLACES)
		places_made(t, w, seq);
	/* Else it was before it was seen who is told of them. */
	if (care & CARE_CAME && !stateless)
		numbers_came(t, w);
	if (care & TRAIT_INNER)
		inner_made(w);
}

void care_told(struct thread *t, const struct walk *w, long nr, unsigned care)
{
	if (care & CARE_POLLS)
		epoll_led(t, w, nr);
	if (care & TRAIT_KEPT)
		state_note(t, nr, w->args, w->result);
	if (care & TRAIT_RIGHTS && w->result >= 0)
		realm_changed(t, nr);
}

void care_untold(struct thread *t, const struct walk *w, long nr, unsigned care)
{
	MUST(t->has_lane && !t->following);
	/* Others are told of no lane of whom has other rights, when they come. */
	if (care & TRAIT_RIGHTS && w->result >= 0 && !stateless)
		realm_changed(t, nr);
}

void given(struct thread *t, const struct walk *w)
{
	/* Nothing was given: what comes behind it finds that told. */
	if (w->result == CALL_RESTART)
		edge_tell(t, 0);
	giving_end(t);
}

void signal_next(struct thread *t)
{
	t->writer.open->flags |= EVENT_SIGNAL_NEXT;
	t->announced = 1;
}

struct event *cell_wait(struct thread *t, long nr)
{
	MUST(t->has_lane && !t->following);
	if (t->writer.owes)
		host_settle(&t->writer);
	return host_begin(&t->writer, EVENT_CALL, (uint16_t)nr);
}

void call_write_else(struct thread *t, int64_t result, uint64_t seq, uint8_t flags)
{
	const struct plan *p = &row_plans[t->call_slot];
	struct walk w = { .desc = p->desc, .args = t->frame.arg, .recipe = &p->recipe,
			  .result = result, .room = t->asked_room };

	call_write(t, &w, p->desc->nr, seq, flags);
}
