/*
 * A call of a follower whose connections may be served in another order (apart.c) meets the
 * leader's next call on its connection; and its waits are told of what the leader's bring when
 * all is done that the leader did before.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/eventpoll.h>

#include "engine/core/away.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/order/apart.h"
#include "engine/inside/order/passable.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/rules/apart_meet.h"
#include "engine/inside/rules/follow_rules.h"

#define SAME_TOLD	32	/* waits that brought the same, and nothing came of it */
#define SOON		4	/* waits that only look, until what comes next is told */
#define PUT_OFF		1	/* waits that a connection may be put off behind */
#define WAITS_FAR	4
#define EPOLL_SIZE	12
#define EPOLL_DATA	4
_Static_assert(APART_EVENTS % 64 == 0 && APART_EVENTS > AHEAD_EVENTS, "words of bits");

bool apart_given(const struct thread *t)
{
	const struct rules_thread *rt = t->rules;

	return rt && rt->now && rt->rules.apart && rt->source == t->reader.cursor->source;
}

/* The descriptor, if it is a connection; else APART_NONE. */
static int32_t apart_connection(uint64_t fd)
{
	return file_is_client((int32_t)fd) ? (int32_t)fd : APART_NONE;
}

int32_t apart_of(const struct event *e)
{
	const struct call_desc *d = e->kind == EVENT_CALL ? call_find(e->call) : NULL;

	if (!d || !d->nargs)
		return APART_NONE;
	if (call_has(d, TRAIT_REGISTERS))
		return apart_connection(e->arg[2]);
	return d->args[0].kind == KIND_FD ? apart_connection(e->arg[0]) : APART_NONE;
}

/* A connection's event, which is met when its turn comes. */
bool apart_passes(const struct thread *t, const struct event *e)
{
	return apart_given(t) && apart_of(e) != APART_NONE;
}

static int32_t of_call(const struct walk *w)
{
	if (!w->desc || !w->desc->nargs)
		return APART_NONE;
	if (call_has(w->desc, TRAIT_REGISTERS))
		return apart_connection(w->args[2]);
	return w->desc->args[0].kind == KIND_FD ? apart_connection(w->args[0]) : APART_NONE;
}

enum found {
	FOUND,
	FOUND_NOT_YET,		/* the leader has not come so far */
	FOUND_LATER,		/* behind a wait that tells of it, or behind too many */
};

/* Does the looked-at wait say that the connection can be read? */
static bool brings(struct reader r, const struct event *e, int32_t fd)
{
	uint8_t one[EPOLL_SIZE];
	uint32_t len;

	r.ahead = true;
	if (e->result <= 0 || !follow_payload(&r, &len, sizeof(len)))
		return false;
	for (; len >= sizeof(one) && follow_payload(&r, one, sizeof(one)); len -= sizeof(one))
		if (*(const uint32_t *)one & EPOLLIN &&
		    epoll_is_of((int32_t)e->arg[0], *(const uint64_t *)(one + EPOLL_DATA), fd))
			return true;
	return false;
}

/* It can be told to wait: epoll knows of it, here as in the leader. */
static bool is_far(int32_t of, bool reads, unsigned waits)
{
	return reads && waits > WAITS_FAR && epoll_has(of);
}

/* So much is there that the leader may soon wait for room. */
static bool is_half(const struct thread *t, const struct reader *at)
{
	return at->pos - t->reader.cursor->at >=
	       (uint64_t)chunks_in_memory(streams.conduct) * CHUNK_CELLS / 2;
}

/*
 * The first event of an object that is still to be met, and its place.  A server that
 * puts a connection off waits once more before it goes on with it; what it reads later, or
 * behind a wait that brings it, is not there yet.  Nor is what is many waits away: a
 * follower that read on and on would leave the others behind.
 */
static enum found find(struct thread *t, int32_t of, bool reads, struct reader *at, unsigned *n,
		       const struct event **found)
{
	const struct event *e;
	unsigned waits = 0, since = 0;

	*at = t->reader;
	e = reader_peek(at);
	for (*n = 0; e && *n < APART_EVENTS; ++*n, e = reader_next(at)) {
		bool is_of = e->kind == EVENT_CALL && apart_of(e) == of;

		*found = e;
		if (is_of && !apart_is_taken(t, *n))
			return is_far(of, reads, waits) ? FOUND_LATER : FOUND;
		if (is_of)
			since = 0;
		if (e->kind != EVENT_CALL || !epoll_is_wait(e->call))
			continue;
		waits++;
		since++;
		if (reads && (since > PUT_OFF || brings(*at, e, of)))
			return FOUND_LATER;
	}
	return *n == APART_EVENTS || is_far(of, reads, waits) || is_half(t, at) ? FOUND_LATER :
									   FOUND_NOT_YET;
}

static bool is_accept(long nr)
{
	return call_has(call_find(nr), TRAIT_ACCEPTS);
}

/* What the leader was given its number for is not over here. */
static bool is_number_used(const struct event *e, long nr)
{
	return is_accept(nr) && e->kind == EVENT_CALL && e->call == nr &&
	       file_is_client(e->result);
}

/* What the leader's call says of its object. */
static uint32_t readiness_of(const struct event *e)
{
	const struct call_desc *d = call_find(e->call);

	if (!d || call_has(d, TRAIT_REGISTERS) || d->result != KIND_SIZE)
		return is_accept(e->call) ? EPOLLIN : 0;
	return d->class == CLASS_INPUT ? EPOLLIN : EPOLLOUT;
}

static int64_t time_of(const struct walk *w)
{
	struct { int64_t seconds, ns; } time = { 1, 0 };

	if (w->desc->nr != __NR_epoll_pwait2)
		return (int32_t)w->args[3];
	if (!w->args[3] || target_in(&time, w->args[3], sizeof(time)))
		return -1;
	return time.seconds || time.ns;
}

/* There is still something to do before the leader's next wait: false: nobody can be told. */
static bool wait_answer(struct thread *t, const struct walk *w, const struct event *e, long *result)
{
	struct rules_thread *rt = t->rules;
	int32_t fd = apart_of(e);

	if (rt->told_at != t->reader.pos)
		rt->tolds = 0;
	rt->told_at = t->reader.pos;
	if (++rt->tolds > SAME_TOLD)
		return false;
	if (rt->tolds < SOON && !time_of(w)) {
		*result = 0;
		return true;
	}
	if (!readiness_of(e))
		return false;
	if (fd == APART_NONE)
		fd = (int32_t)e->arg[0];
	*result = epoll_make(w, fd, readiness_of(e));
	return *result > 0;
}

/* Nothing more will come behind what is there. */
static bool is_over(const struct thread *t)
{
	return CONSUME(conduct_bits, &streams.conduct->ended) >>
	       t->reader.cursor->source & 1;
}

/* What is before the leader's wait: met, dropped, or still to be done. */
static enum apart before_wait(struct thread *t, const struct walk *w, const struct event **e,
			      long *result)
{
	struct rules_thread *rt = t->rules;

	for (;;) {
		apart_settle(t);
		*e = follow_event(t);
		if (!*e || !apart_given(t) || (*e)->kind != EVENT_CALL)
			return APART_GO_ON;
		if (event_passable(*e)) {
			follow_take(t);
			continue;
		}
		rt->lens = apart_of(*e);
		if (rt->lens == APART_NONE && !is_accept((*e)->call))
			return APART_GO_ON;
		if (rules_drop_front(t))
			continue;
		return wait_answer(t, w, *e, result) ? APART_ANSWERED : APART_GO_ON;
	}
}

static void look_at(struct thread *t, int32_t of, const struct reader *at, unsigned n)
{
	struct rules_thread *rt = t->rules;

	MUST(!rt->apart);	/* what is the front would be forgotten */

	rt->lens = of;
	rt->apart = n;
	if (!n)
		return;
	rt->apart_front = t->reader;
	t->reader = *at;
}

static bool is_read(const struct walk *w, int32_t of)
{
	return of != APART_NONE && w->desc->class == CLASS_INPUT && w->desc->result == KIND_SIZE;
}

static enum apart meet_own(struct thread *t, const struct walk *w, long nr,
			   const struct event **e, long *result)
{
	int32_t of = of_call(w);
	bool reads = is_read(w, of);
	const struct event *found;
	struct reader at;
	unsigned n;

	for (;;) {
		enum found is = find(t, of, reads, &at, &n, &found);

		if (is == FOUND && is_number_used(found, nr)) {
			*result = -EAGAIN;
			return APART_ANSWERED;
		}
		if (is == FOUND) {
			look_at(t, of, &at, n);
			*e = found;
			return APART_GO_ON;
		}
		if (is == FOUND_LATER && !reads)
			return APART_GO_ON;
		if (is == FOUND_LATER) {
			*result = -EAGAIN;
			return APART_ANSWERED;
		}
		if (!is_over(t) && follow_behind(t, n, NULL, NULL))
			continue;
		if (find(t, of, reads, &at, &n, &found) != FOUND)
			return APART_GO_ON;
	}
}

enum apart apart_meet(struct thread *t, const struct walk *w, long nr, const struct event **e,
		      long *result)
{
	if (!w->desc || w->desc->class == CLASS_LIFE)
		return APART_GO_ON;
	if (epoll_is_wait(nr))
		return before_wait(t, w, e, result);
	if ((*e)->kind != EVENT_CALL && !event_aside(*e))
		return APART_GO_ON;
	if (w->desc->class == CLASS_SOFT || w->desc->class == CLASS_QUERY)
		return APART_GO_ON;
	return meet_own(t, w, nr, e, result);
}
