/*
 * A difference that is not to count (--on-divergence ignore and promote): the
 * follower has made another call than its leader, or the same one with another
 * content, and both are to go on from there.  The world has had what the leader did.
 *
 * Either the two made the same call on the same object: it is done, all of it.  Or
 * the leader made some calls that this version does not make: they are passed over,
 * if its call is found behind them.  Or only this version makes it: what it would
 * send is taken to be sent.  What the world told the leader comes once, and is
 * never passed over in a search for a call that sends something.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>

#include "engine/abi/waits.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/replay/answer.h"
#include "engine/inside/replay/follow.h"
#include "engine/inside/replay/ignore.h"

#define SEARCHED	32	/* events */
#define SEARCHES	200	/* for those that have not come yet */

/* --- the same call ----------------------------------------------------------------- */

static bool names_object(const struct call_desc *d)
{
	return d->nargs && (d->args[0].kind == KIND_FD || d->args[0].kind == KIND_DIRFD);
}

static bool is_same_call(const struct event *e, const struct walk *w, long nr)
{
	return e->kind == EVENT_CALL && e->call == nr && w->desc &&
	       (!names_object(w->desc) || (uint32_t)e->arg[0] == (uint32_t)w->args[0]);
}

static uint64_t spans_length(uint64_t spans, uint64_t n)
{
	uint64_t len = 0;
	struct span s;

	for (; n && n <= 1024 && !target_in(&s, spans, sizeof(s)); n--, spans += sizeof(s))
		len += s.len;
	return len;
}

/* How much the call would send, or -1: it sends nothing. */
static int64_t sent_length(const struct walk *w)
{
	struct message m;

	for (unsigned i = 0; w->desc->result == KIND_SIZE && i < w->desc->nargs; i++) {
		const struct arg_desc *a = &w->desc->args[i];

		if (a->kind != KIND_MEM || a->dir != DIR_IN)
			continue;
		switch (step_kind(w, i)) {
		case STEP_BYTES:
			return (int64_t)w->args[a->len_arg];
		case STEP_VECTOR:
			return (int64_t)spans_length(w->args[i], w->args[a->len_arg]);
		case STEP_MESSAGE:
			if (target_in(&m, w->args[i], sizeof(m)))
				return -1;
			return (int64_t)spans_length(m.iov, m.iov_n);
		default:
			break;
		}
	}
	return -1;
}

/* No more than the call has room for: the leader's may have had more. */
static int64_t received_length(const struct walk *w)
{
	for (unsigned i = 0; w->desc->result == KIND_SIZE && i < w->desc->nargs; i++)
		if (w->desc->args[i].dir == DIR_OUT && step_kind(w, i) == STEP_BYTES &&
		    w->desc->args[i].len_rule == LEN_RULE_RESULT)
			return (int64_t)step_length(w, i);
	return w->result;
}

static void done(struct thread *t, const struct event *e, struct walk *w, long nr, long *result)
{
	struct mismatch m;
	int64_t sent;
	uint8_t flags;

	w->result = e->result;
	follow_note_first(t, w, w->result);
	match_memory(&t->reader, w, true, &m);
	flags = follow_take(t);
	sent = sent_length(w);
	if (w->result > 0)
		w->result = sent >= 0 ? sent : received_length(w);
	*result = follow_told(t, w, nr, flags);
}

/* --- calls that only one of them makes ---------------------------------------------- */

/* Where the search ends: what the world told comes once, and a handler must run. */
static bool is_needed(const struct event *e, const struct walk *w)
{
	const struct call_desc *d = call_find(e->call);

	if (e->kind != EVENT_CALL)
		return !event_aside(e);
	return !d || d->class == CLASS_LIFE ||
	       (d->class == CLASS_INPUT && w->desc->class != CLASS_INPUT);
}

enum found { FOUND_NOT, FOUND_NOT_YET, FOUND };

/* Where among the leader's next events the call stands. */
static enum found call_search(struct thread *t, struct walk *w, long nr, uint64_t *at)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);
	struct mismatch m;

	ahead.ahead = true;
	for (int n = 0; n < SEARCHED; n++, e = reader_next(&ahead)) {
		if (!e)
			return FOUND_NOT_YET;
		*at = ahead.pos;
		w->result = e->result;
		if (is_same_call(e, w, nr) && match_values(w, e, &m))
			return FOUND;
		if (is_needed(e, w))
			return FOUND_NOT;
	}
	return FOUND_NOT;
}

static bool stream_goes_on(const struct thread *t)
{
	return !t->reader.broken &&
	       !(streams.conduct->ended >> t->reader.cursor->source & 1);
}

/* Passes over what only the leader did; false: the call is not behind it. */
static bool call_reach(struct thread *t, struct walk *w, long nr)
{
	const struct event *e;
	enum found found;
	uint64_t at = 0;

	for (int i = 0; (found = call_search(t, w, nr, &at)) == FOUND_NOT_YET && i < SEARCHES &&
	     stream_goes_on(t); i++)
		change_wait(change_now(), PAUSE_FIRST_NS);
	if (found != FOUND)
		return false;
	while ((e = reader_peek(&t->reader)) && t->reader.pos < at) {
		lock_passed(t, e);
		follow_take(t);
	}
	return true;
}

enum step_result ignore_difference(struct thread *t, const struct event *e, struct walk *w,
				   long nr, long *result)
{
	int64_t sent;

	if (is_same_call(e, w, nr)) {
		done(t, e, w, nr, result);
		return STEP_DONE;
	}
	if (w->desc && call_reach(t, w, nr))
		return STEP_AGAIN;
	if (!w->desc || w->desc->class != CLASS_EFFECT) {
		follow_take(t);
		return STEP_AGAIN;
	}
	t->answered = 1;
	sent = sent_length(w);
	*result = w->desc->result == KIND_FD ? -EMFILE : sent > 0 ? sent : 0;
	return STEP_OWN;
}
