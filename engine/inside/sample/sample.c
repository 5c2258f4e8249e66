/*
 * What a stateless leader tells of a call that it has made, or does not: scope.c says
 * which connections are told, this file what that means for waits, accepts and clocks,
 * so that a connection that is kept leaves nothing in the stream.
 */
#include <asm/unistd.h>
#include <linux/errno.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/sample/sample.h"
#include "engine/inside/sample/scope.h"

enum due { DUE_NONE, DUE_CLIENTS, DUE_NOTHING };

/* A clock that was read behind a wait that is put off. */
static void clock_keep(struct thread *t, const struct walk *w)
{
	long nr = w->desc->nr;
	bool has_clock = nr == __NR_clock_gettime;
	struct clock_due *c = &t->clock_due[t->clocks_due];

	if (t->clocks_due == CLOCKS_DUE || w->result < 0 ||
	    !call_has(w->desc, TRAIT_CLOCK))
		return;
	MUST(t->clocks_due < CLOCKS_DUE);
	*c = (struct clock_due){ nr, w->result, w->args[0], { 0 } };
	if (nr == __NR_time || !target_in(c->value, w->args[has_clock], sizeof(c->value)))
		t->clocks_due++;
}

/* With the readings of then, which followers' timers go by. */
static void clocks_tell(struct thread *t)
{
	MUST(t->clocks_due <= CLOCKS_DUE);
	for (unsigned i = 0; i < t->clocks_due; i++) {
		struct clock_due *c = &t->clock_due[i];
		uint64_t at = (uint64_t)c->value, args[CALL_ARGS] = { 0 };
		struct walk w = { .desc = call_find(c->nr), .args = args, .result = c->result };

		if (c->nr == __NR_clock_gettime) {
			args[0] = c->arg;
			args[1] = at;
		} else if (c->nr == __NR_gettimeofday) {
			args[0] = at;
		}
		call_tell(t, &w, c->nr);
	}
	t->clocks_due = 0;
}

/* What was put off until something is told: a seam, and a wait. */
void sample_due(struct thread *t)
{
	MUST(t->has_lane && !t->following);
	if (t->seam_due)
		lead_note(t, EVENT_SEAM, t->slot->seams);
	t->seam_due = 0;
	if (t->wait_due) {
		struct walk w = { .desc = call_find(t->due_nr), .args = t->due_args,
				  .result = t->due_result };

		t->wait_due = DUE_NONE;
		call_tell(t, &w, t->due_nr);
		clocks_tell(t);
	}
}

/*
 * A wait is told if it brought something that followers know.  If that is only that
 * there are connections to accept, it is told when one of them is to be told.  If it
 * is nothing, it may still be that the thread does what a timer says: then it is told
 * as one that brought nothing.
 */
static bool wait_told(struct thread *t, const struct walk *w, long nr)
{
	enum brings brings = w->result > 0 && !t->pending ? epoll_brings(w, scope_knows) :
							    BRINGS_KNOWN;

	t->kept = brings != BRINGS_KNOWN;
	t->wait_due = brings == BRINGS_KNOWN ? DUE_NONE :
		      brings == BRINGS_CLIENTS ? DUE_CLIENTS : DUE_NOTHING;
	t->clocks_due = 0;
	t->due_nr = nr;
	t->due_result = brings == BRINGS_CLIENTS ? w->result : 0;
	for (int i = 0; t->wait_due && i < CALL_ARGS; i++)
		t->due_args[i] = w->args[i];
	return brings == BRINGS_KNOWN;
}

void sample_kept(struct thread *t, const struct walk *w, struct scope_row row)
{
	scope_stray(t, w->args, row.fds);
	if (t->wait_due)
		clock_keep(t, w);
	if (row.what & SCOPE_SETS)
		epoll_noted(w);
	scope_leave(t, w, false, row);
}

enum sample_way sample_made(struct thread *t, const struct walk *w, struct scope_row row)
{
	bool hears = scope_leave(t, w, true, row);

	if (row.what & SCOPE_SETS)
		epoll_noted(w);
	if (row.what & SCOPE_POLLS && !wait_told(t, w, w->desc->nr))
		return SAMPLE_KEPT;
	if (row.what & SCOPE_ACCEPTS && t->wait_due == DUE_CLIENTS && (!hears || w->result < 0)) {
		t->kept = 1;
		return SAMPLE_KEPT;
	}
	/* Who waits in accept itself waits on: it may not know what to do with a failure. */
	if (!hears && !t->polls)
		return SAMPLE_KEPT;
	if (t->seam_due | t->wait_due)
		sample_due(t);
	return hears ? SAMPLE_TOLD : SAMPLE_PASSED;
}
