/*
 * What rules see: events ahead of the cursor, and the call's own memory.
 */
#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/edges.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/rules/apart_meet.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/rules_sight.h"

#define HELD_FAR	256	/* events from the cursor, in one sequence */
#define SOME_ADDRESS	1	/* what an event knows of a pointer: it was not null */
_Static_assert(HELD_FAR <= APART_EVENTS && APART_EVENTS <= UINT16_MAX, "held.ahead");
_Static_assert(RULES_ARGS >= CALL_ARGS && RULES_ARGS <= 8, "a held event's `open` has a bit each");

/* Events are kept while the cursor stands still and a rule holds them. */
void sight_begin(struct thread *t)
{
	struct rules_thread *rt = t->rules;
	const struct cursor *c = t->reader.cursor;

	if (rt->state.active && rt->front == c->at && rt->front_source == c->source)
		return;
	rt->helds = 0;
	rt->held_used = 0;
	rt->front = c->at;
	rt->front_source = c->source;
}

/* The next piece, waiting for it: the deadline is not for that. */
size_t sight_piece(struct thread *t, struct reader *r, size_t want, const uint8_t **at)
{
	size_t n;

	while (!(n = reader_piece(r, want, at))) {
		if (!rules_may_go_on(r))
			return reader_piece(r, want, at);
		__atomic_add_fetch(&t->slot->matching, 2, __ATOMIC_RELAXED);
		if (!host_more(r))
			return 0;
	}
	return n;
}

static bool take(struct thread *t, struct reader *r, void *to, size_t len)
{
	uint8_t *out = to;

	while (len) {
		const uint8_t *at;
		size_t n = sight_piece(t, r, len, &at);

		if (!n)
			return false;
		if (out) {
			bytes_copy(out, at, n);
			out += n;
		}
		len -= n;
	}
	return true;
}

static bool take_length(struct thread *t, struct reader *r, uint32_t *len)
{
	return take(t, r, len, sizeof(*len));
}

static bool has_room(const struct rules_thread *rt, const struct reader *r, uint32_t len)
{
	return r->left >= len || len <= sizeof(rt->held_room) - rt->held_used;
}

/* A section's bytes, in one piece; empty when there is no room for them. */
static struct view gather(struct thread *t, struct reader *r, uint32_t len)
{
	struct rules_thread *rt = t->rules;
	uint8_t *to = rt->held_room + rt->held_used;

	MUST(rt->held_used <= sizeof(rt->held_room));

	if (r->left >= len) {
		struct view v = view_of(r->piece, len);

		r->piece += len;
		r->left -= len;
		return v;
	}
	if (len > sizeof(rt->held_room) - rt->held_used) {
		take(t, r, NULL, len);
		return view_none();
	}
	rt->held_used += len;
	return take(t, r, to, len) ? view_of(to, len) : view_none();
}

/* Notes where an argument's bytes are; false: the event has none for it. */
static bool section_note(struct thread *t, struct held *h, struct reader *r, unsigned i,
			 enum step step)
{
	uint32_t len = 0, other;

	if (step == STEP_MESSAGE) {
		if (!take_length(t, r, &other))			/* the flags */
			return false;
		for (int n = 0; n < 2; n++)			/* name, control */
			if (!take_length(t, r, &other) || !take(t, r, NULL, other))
				return false;
	}
	if (!take_length(t, r, &len))
		return false;
	h->len[i] = len;
	h->part[i] = *r;
	h->open |= (uint8_t)(1u << i);
	return true;
}

/* One behind another that is in pieces: that is gathered first. */
static bool section_pass(struct thread *t, struct held *h, struct reader *r, unsigned i)
{
	*r = h->part[i];
	h->buf[i] = gather(t, r, h->len[i]);
	h->open &= (uint8_t)~(1u << i);
	return !r->broken;
}

static void sections_note(struct thread *t, struct held *h, struct walk *w)
{
	struct reader r = h->at;
	int before = -1;

	for (unsigned i = 0; i < w->desc->nargs; i++) {
		enum step step = step_kind(w, i);

		if (step == STEP_NONE || step == STEP_VALUE)
			continue;
		if (before >= 0 && !section_pass(t, h, &r, (unsigned)before))
			return;
		if (step == STEP_MESSAGES || step == STEP_STRINGS)
			return;
		if (!section_note(t, h, &r, i, step)) {
			h->call.args[i] = 0;	/* nothing was told of it */
			return;
		}
		before = (int)i;
	}
}

static void values_take(struct held *h, struct walk *w, const struct thread *t)
{
	const struct rules_call *own = &t->rules->call;
	bool same = own->nr == h->call.nr;
	unsigned values = 0;

	for (unsigned i = 0; i < CALL_ARGS; i++)
		h->call.args[i] = 0;
	for (unsigned i = 0; i < w->desc->nargs; i++) {
		enum arg_kind kind = w->desc->args[i].kind;

		/* As the match does: where it is the same call, its pointers are null as ours. */
		if (kind >= KIND_VALUES || kind == KIND_PTR)
			h->call.args[i] = same && !own->args[i] ? 0 : SOME_ADDRESS;
		else if (step_kind(w, i) == STEP_VALUE && values < EVENT_ARGS)
			h->call.args[i] = h->event->arg[values++];
	}
}

static void held_fill(struct thread *t, struct held *h, const struct event *e, struct reader *at)
{
	struct walk w = { .desc = call_find(e->call), .args = h->call.args, .result = e->result };

	h->event = e;
	h->at = *at;
	h->at.ahead = true;	/* it only looks: nothing is given back */
	h->open = 0;
	h->call = (struct rules_call){ .nr = e->call, .ret = e->result, .host = h };
	for (unsigned i = 0; i < RULES_ARGS; i++)
		h->buf[i] = view_none();
	if (!w.desc)
		return;
	values_take(h, &w, t);
	if (call_has_variants(e->call)) {
		w.desc = call_find_variant(e->call, h->call.args);
		values_take(h, &w, t);
	}
	if (w.desc->class != CLASS_LIFE)
		sections_note(t, h, &w);
}

enum sight sight_of(struct thread *t, const struct event *e, unsigned ahead)
{
	const struct call_desc *d = e->kind == EVENT_CALL ? call_find(e->call) : NULL;

	if (apart_is_taken(t, ahead) || event_aside(e))
		return UNSEEN;
	if (t->rules->lens != APART_ALL && apart_of(e) != t->rules->lens)
		return UNSEEN;
	if (e->kind != EVENT_CALL)
		return BARRIER;
	return d && d->class == CLASS_SOFT && event_is_plain(e) &&
	       !(t->rules->rules.object.flags & RULES_CLOCKS) ? UNSEEN : SEEN;
}

/* One more event; false: it is not there (yet). */
static bool held_add(struct thread *t)
{
	struct rules_thread *rt = t->rules;
	const struct held *last = rt->helds ? &rt->held[rt->helds - 1] : NULL;
	struct reader r = last ? last->at : t->reader;
	unsigned ahead = last ? last->ahead + 1u : 0;
	unsigned most = rt->rules.apart ? APART_EVENTS : HELD_FAR;
	const struct event *e;

	if (last && last->event->flags & EVENT_SIGNAL_NEXT)
		return false;
	for (e = last ? reader_next(&r) : reader_peek(&r); e; e = reader_next(&r), ahead++) {
		enum sight s = sight_of(t, e, ahead);

		if (ahead >= most)
			return false;
		if (s == UNSEEN)
			continue;
		if (s != SEEN)
			return false;
		MUST(rt->helds < RULES_STEPS && ahead <= UINT16_MAX);
		rt->held[rt->helds].ahead = (uint16_t)ahead;
		held_fill(t, &rt->held[rt->helds++], e, &r);
		return true;
	}
	return false;
}

const struct rules_call *sight_peek(void *arg, unsigned i)
{
	struct thread *t = arg;

	while (i < RULES_STEPS && t->rules->helds <= i)
		if (!held_add(t))
			return NULL;
	return i < RULES_STEPS ? &t->rules->held[i].call : NULL;
}

/* What another thread gave must have been given here, too: as where no rule is. */
static void order_kept(struct thread *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		edge_meet(t, t->rules->held[i].event);
}

uint8_t rules_drop(struct thread *t, unsigned n)
{
	struct rules_thread *rt = t->rules;
	uint64_t last = n ? rt->held[n - 1].at.pos : 0;
	uint8_t flags = 0;
	const struct event *e;

	if (!n || n > rt->helds)
		return 0;
	order_kept(t, n);
	if (rt->lens != APART_ALL)
		return apart_drop(t, n);
	while ((e = reader_peek(&t->reader)) && t->reader.pos <= last) {
		bool target = t->reader.pos == last;

		if (e->kind == EVENT_LOCK)
			lock_passed(t, e);
		if (target)
			flags = follow_take(t);
		else
			follow_take(t);
		if (target)
			break;
	}
	rt->helds = 0;
	return flags;
}

static struct view own_room(struct rules_thread *rt, uint64_t at, uint64_t len, struct view so_far)
{
	uint8_t *to = rt->own_room + rt->own_used;

	MUST(rt->own_used <= sizeof(rt->own_room));

	if (len > sizeof(rt->own_room) - rt->own_used || target_in(to, at, len))
		return view_none();
	rt->own_used += (uint32_t)len;
	return so_far.len_ ? view_of(so_far.at_, so_far.len_ + len) : view_of(to, len);
}

static struct view own_text(struct rules_thread *rt, uint64_t at)
{
	uint8_t *to = rt->own_room + rt->own_used;
	uint32_t n = 0;

	while (n < STRING_MAX && rt->own_used + n < sizeof(rt->own_room) &&
	       !target_in(to + n, at + n, 1) && to[n])
		n++;
	rt->own_used += n;
	return view_of(to, n);
}

static struct view own_spans(struct rules_thread *rt, uint64_t spans, uint64_t n)
{
	struct view v = view_none();

	for (uint64_t i = 0; i < n && i < 1024; i++, spans += sizeof(struct span)) {
		struct span s;

		if (target_in(&s, spans, sizeof(s)))
			break;
		if (s.len)
			v = own_room(rt, s.at, s.len, v);
	}
	return v;
}

static struct view own_bytes(struct rules_thread *rt, unsigned i)
{
	struct walk w = *rt->walk;
	struct message m;

	w.result = INT64_MAX;	/* all that it offers */
	if (!w.desc || i >= w.desc->nargs || !w.args[i] || w.desc->args[i].dir == DIR_OUT)
		return view_none();
	switch (step_kind(&w, i)) {
	case STEP_TEXT:
		return own_text(rt, w.args[i]);
	case STEP_BYTES:
		return own_room(rt, w.args[i], step_length(&w, i), view_none());
	case STEP_VECTOR:
		return own_spans(rt, w.args[i], w.args[w.desc->args[i].len_arg]);
	case STEP_MESSAGE:
		return target_in(&m, w.args[i], sizeof(m)) ? view_none()
							   : own_spans(rt, m.iov, m.iov_n);
	default:
		return view_none();
	}
}

struct view sight_bytes(void *arg, const struct rules_call *call, unsigned i)
{
	struct thread *t = arg;
	struct rules_thread *rt = t->rules;
	struct held *h = call->host;

	if (i >= RULES_ARGS)
		return view_none();
	if (h) {
		struct reader r = h->part[i];

		if (h->open >> i & 1 && has_room(rt, &r, h->len[i]))
			h->buf[i] = gather(t, &r, h->len[i]);
		h->open &= (uint8_t)~(1u << i);
		return h->buf[i];
	}
	if (!(rt->own_known >> i & 1))
		rt->own[i] = own_bytes(rt, i);
	rt->own_known |= (uint8_t)(1u << i);
	return rt->own[i];
}

struct view follow_own_bytes(struct thread *t, unsigned i)
{
	return sight_bytes(t, &t->rules->call, i);
}
