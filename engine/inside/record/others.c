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

/* Who reads at the other end of a pipe finds that this one is closed. */
static void ends_give(struct thread *t, struct numbers n)
{
	if (!locks_on || !t->has_lane || !stream_followed(t) || in_turns())
		return;
	FD_ROWS_EACH(fd, n)
		if (inner_is(fd))
			object_give(t, object_behind(fd), false);
}

static bool may_be_kept(struct numbers n)
{
	const struct fd_row *r = fd_row(n.first);

	return n.first != n.last || (r && fd_row_kept(r));
}

static void leader_gone(struct thread *t, struct numbers n)
{
	if (!may_be_kept(n))
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
	if (!may_be_kept(n))
		return;
	ends_give(t, n);
	if (!call_has(w->desc, TRAIT_REPLACES))
		leader_gone(t, n);
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

/*
 * Who closes a number, or handed it over to be closed, was given it, and came behind who gave it
 * before; and one that was not closed nobody is given.
 */
static void number_give(struct thread *t, int64_t fd)
{
	struct fd_row *row = fd_row_make(fd);

	/* The call is still to be made. */
	if (row)
		PUBLISH(number_closed, &row->closer,
			edge_to(t->lane, t->writer.lane->life, t->writer.head, EDGE_DONE));
}

/* Into another descriptor than it takes from (splice, tee), or where no descriptor leads. */
static void meeting_give(struct thread *t, const struct walk *w)
{
	if (!call_has(w->desc, TRAIT_READS)) {
		object_give(t, OBJECT_OTHER, false);
		return;
	}
	for (unsigned i = 1; i < w->desc->nargs; i++)
		if (w->desc->args[i].kind == KIND_FD && inner_is((int32_t)w->args[i]))
			object_give(t, object_behind((int32_t)w->args[i]), false);
}

/* What the call gives, another thread may meet before it is told. */
void giving_begin(struct thread *t, const struct walk *w, unsigned care, uint64_t seq)
{
	long fd = (int32_t)w->args[0];
	bool writes;

	if (care & CARE_GIVES && call_meets(w->desc) && !in_turns())
		meeting_give(t, w);
	if (!seq)
		return;
	if (care & TRAIT_CLOSES) {
		number_give(t, fd);
		return;
	}
	/* Whoever closes another range may know nothing of this one. */
	if (care & TRAIT_CLOSES_RANGE) {
		object_give(t, OBJECT_RANGES, true);
		return;
	}
	writes = care & TRAIT_WRITES && inner_is(fd);
	if (!writes && !(care & (TRAIT_REGISTERS | TRAIT_SIGNALS)))
		return;
	giving_set(t, seq);
	if (in_turns())
		return;
	if (writes)
		object_give(t, object_behind(fd), false);
	else
		object_give(t, care & TRAIT_SIGNALS ? OBJECT_SIGNALS : object_at(fd), true);
}

void number_take(struct thread *t, int64_t fd, uint64_t seq)
{
	const struct fd_row *row = fd_row(fd);

	if (row)
		edge_take(t, CONSUME(number_closed, &row->closer), seq);
	object_take(t, OBJECT_RANGES, seq);
}

struct taking {
	struct thread *t;
	uint64_t seq;
};

static void number_given(void *what, int32_t fd)
{
	const struct taking *taking = what;

	number_take(taking->t, fd, taking->seq);
}

/* The call was made: whether its event has an edge, which the thread has then. */
uint8_t after_others(struct thread *t, const struct walk *w, unsigned care, uint64_t seq)
{
	long fd = (int32_t)w->args[0];

	if (care & CARE_NUMBER)
		numbers_given(w, number_given, &(struct taking){ t, seq });
	if (in_turns())
		return edge_flag(t);
	if ((care & TRAIT_EPOLL && w->result >= 0) || (care & TRAIT_READS && inner_is(fd)))
		object_take(t, object_at(fd), seq);
	if (care & TRAIT_SLEEPS)
		object_take(t, OBJECT_SIGNALS, seq);
	else if (care_takes_other(care))
		object_take(t, OBJECT_OTHER, seq);
	return edge_flag(t);
}
