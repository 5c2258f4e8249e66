/*
 * What threads of a leader do for one another: numbers of descriptors that are closed
 * and given again, registrations, bytes, signals.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/private.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/edge.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/others.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/state/take.h"

/*
 * A descriptor's number is used again as soon as the kernel has closed it, before
 * the thread that closed it has told so.  Who is given the number waits for that:
 * its event stands behind the other's, and a follower's thread waits likewise
 * (order_wait_all_told).
 */
#define CLOSING_YIELDS	20

static void closing_set(int64_t fd, uint8_t on)
{
	struct fd_row *r = fd_row_make(fd);

	/* At the end, the event is published. */
	if (r)
		PUBLISH(fd_closing, &r->closing, on);
}

/* Ranges that are closed and not told yet: they may have any number. */
static uint32_t ranges_closing;

static void closing_note(const struct walk *w, struct numbers n, bool on)
{
	if (!locks_on)
		return;
	if (call_has(w->desc, TRAIT_CLOSES))
		closing_set(n.first, on);
	else if (on)
		PUBLISH_BY(fd_ranges, fetch_add, &ranges_closing, 1);
	else if (__atomic_load_n(&ranges_closing, __ATOMIC_RELAXED))
		PUBLISH_BY(fd_ranges, fetch_sub, &ranges_closing, 1);
}

static bool is_closing(const struct fd_row *r)
{
	return CONSUME(fd_ranges, &ranges_closing) || (r && CONSUME(fd_closing, &r->closing));
}

void closing_wait(const struct walk *w)
{
	struct fd_row *r = w->desc->result == KIND_FD ? fd_row(w->result) : NULL;
	struct patience p = PATIENCE(WAIT_closing);

	if (w->desc->result != KIND_FD)
		return;
	for (int i = 0; is_closing(r); i++) {
		if (i < CLOSING_YIELDS) {
			OWN0(__NR_sched_yield);
		} else if (!patience_step(&p)) {	/* its thread may be behind a fork */
			ranges_closing = 0;
			if (r)
				r->closing = 0;
		}
	}
	patience_end(&p);
}

/* --- what is kept of them --------------------------------------------------------------- */

static void leader_gone(struct thread *t, struct numbers n)
{
	const struct fd_row *r = n.first == n.last ? fd_row(n.first) : NULL;

	if (n.first == n.last && (!r || !fd_row_kept(r)))
		return;
#define KEPT(name, leader, follower, ...) leader(t, n);
#include "engine/inside/fd/kept.def"
}

static void leader_copied(int64_t from, int64_t to)
{
	const struct fd_row *r = fd_row(from);

	if (!r || !fd_row_kept(r))
		return;
#define KEPT(name, gone, follower_gone, leader, follower) leader(from, to);
#include "engine/inside/fd/kept.def"
}

void numbers_go(struct thread *t, const struct walk *w)
{
	struct numbers n;

	if (!numbers_gone(w, &n))
		return;
	MUST(n.first >= 0 && n.first <= n.last && !t->following);
	take_closing(t, n, call_has(w->desc, TRAIT_REPLACES) ? (int32_t)w->args[0] : -1);
	if (call_has(w->desc, TRAIT_REPLACES))
		return;
	leader_gone(t, n);
	closing_note(w, n, true);
}

void numbers_went(const struct walk *w)
{
	struct numbers n;

	if (locks_on && call_has(w->desc, TRAIT_CLOSES | TRAIT_CLOSES_RANGE) && numbers_gone(w, &n))
		closing_note(w, n, false);
}

void numbers_came(struct thread *t, const struct walk *w)
{
	struct numbers n;

	if (call_has(w->desc, TRAIT_GATHERS) && w->result >= 0)
		set_made(w->result);
	if (!numbers_copied(w))
		return;
	if (call_has(w->desc, TRAIT_REPLACES) && numbers_gone(w, &n))
		leader_gone(t, n);
	MUST((int32_t)w->args[0] != w->result);
	leader_copied((int32_t)w->args[0], w->result);
}

/* What the call gives, another thread may meet before it is told. */
void giving_begin(struct thread *t, const struct walk *w, unsigned care, uint64_t seq)
{
	long fd = (int32_t)w->args[0];
	bool writes = care & TRAIT_WRITES && inner_is(fd);

	if (!seq || !(writes || care & (TRAIT_REGISTERS | TRAIT_SIGNALS)))
		return;
	giving_set(t, seq);
	if (writes)
		object_give(t, object_behind(fd), false);
	else
		object_give(t, care & TRAIT_SIGNALS ? OBJECT_SIGNALS : object_at(fd), true);
}

/* The call was made: whether its event has an edge, which the thread has then. */
uint8_t after_others(struct thread *t, const struct walk *w, unsigned care)
{
	long fd = (int32_t)w->args[0];

	if ((care & TRAIT_EPOLL && w->result >= 0) || (care & TRAIT_READS && inner_is(fd)))
		object_take(t, object_at(fd));
	if (care & TRAIT_SLEEPS)
		object_take(t, OBJECT_SIGNALS);
	return edge_flag(t);
}
