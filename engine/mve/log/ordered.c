/*
 * Events in order.  All of them wait for a moment in their lanes.  The one that was found first
 * comes next, and before it what others of its process did before: events have a number, of
 * their process, from before the call or from when it was told.  Two things come before that.
 * What has an edge waits for the place that it leads to; what a new thread or process does waits
 * for the call that made it.
 *
 * Where the beginning was dropped a lane begins where it is first seen, and what leads before that
 * is behind us.  A recording that is cut, or lies, may lack what is waited for: what waits is
 * bounded, and beyond that, and at the end, it is handed out as it stands.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/abi/edge.h"
#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/mve/log/ordered.h"

/* Limit (recordings): bytes of events that wait for others. Beyond: they are shown too early. */
#define WAIT_MOST	(64u << 20)
#define WAIT_NS		200000000	/* the recorder has found by then what came before */

/* A copy of what waits. */
struct waiting {
	struct waiting *next;
	struct told told;
	struct event event;
	bool over;
	uint8_t bytes[];
};

struct course {
	uint32_t life, born;	/* that is handed out; the last that was made */
	uint64_t next;		/* place behind what was handed out */
	bool seen;
	struct waiting *first, **last;
};

struct ordered {
	ordered_take *take;
	frame_take *other;
	bool dropped;		/* the recording's beginning */
	void *ctx;
	uint64_t now_ns, number;	/* of the last that was found */
	size_t bytes;		/* that wait */
	uint32_t active[LANES], n;	/* lanes with something that waits */
	struct course lane[LANES];
};

/* --- what has to come before ---------------------------------------------------------- */

static bool edge_is_met(const struct ordered *o, uint64_t edge)
{
	const struct course *c = &o->lane[edge_lane(edge) % LANES];
	uint64_t now = edge_to(edge_lane(edge), c->life, c->next, 0);
	bool before = o->dropped && !c->seen;
	int32_t lives = (int32_t)((now >> (EDGE_PLACE_BITS + 1) & EDGE_LIVES) -
				  (edge >> (EDGE_PLACE_BITS + 1) & EDGE_LIVES));

	if (before)
		return true;
	if (lives)
		return (lives > 0) == (abs(lives) < (int)EDGE_LIVES / 2);
	return edge_behind(now, edge & ~EDGE_DONE) >= (edge & EDGE_DONE ? 1 : 0);
}

/* The first thread is nobody's; another's lane is named by the call that made it. */
static bool is_born(const struct ordered *o, const struct told *t)
{
	return (!t->lane && t->life == 1) || o->lane[t->lane].born >= t->life;
}

static bool may_come(const struct ordered *o, const struct waiting *w)
{
	return is_born(o, &w->told) &&
	       (w->over || !(w->event.flags & EVENT_AFTER) ||
		edge_is_met(o, w->event.arg[EDGE_ARG]));
}

static void birth_see(struct ordered *o, const struct event *e)
{
	if (e->kind == EVENT_CALL && call_bears(call_find(e->call)) && e->result > 0 &&
	    e->arg[0] < LANES)
		o->lane[e->arg[0]].born = (uint32_t)e->arg[1];
}

/* --- lanes ------------------------------------------------------------------------------ */

static void waits_add(struct ordered *o, const struct told *t, bool over)
{
	struct course *c = &o->lane[t->lane];
	struct waiting *w = malloc(sizeof(*w) + t->len);

	MUST(w && t->lane < LANES);
	*w = (struct waiting){ .told = *t, .over = over };
	if (!over)
		w->event = *t->event;
	if (t->len)
		memcpy(w->bytes, t->payload, t->len);
	w->told.event = over ? NULL : &w->event;
	w->told.payload = w->bytes;
	if (o->dropped && !c->seen) {
		c->life = c->born = t->life;
		c->next = t->place;
	}
	c->seen = true;
	if (!c->first) {
		c->last = &c->first;
		o->active[o->n++] = t->lane;
	}
	*c->last = w;
	c->last = &w->next;
	o->bytes += t->len + sizeof(*w);
}

static void first_hand_out(struct ordered *o, unsigned at)
{
	struct course *c = &o->lane[o->active[at]];
	struct waiting *w = c->first;

	c->first = w->next;
	if (!c->first)
		o->active[at] = o->active[--o->n];
	o->bytes -= w->told.len + sizeof(*w);
	c->life = w->told.life;
	c->next = w->told.behind;
	if (!w->over)
		birth_see(o, &w->event);
	o->take(o->ctx, &w->told, w->over);
	free(w);
}

static struct waiting *first_of(const struct ordered *o, unsigned at)
{
	return o->lane[o->active[at]].first;
}

/* --- which is next ------------------------------------------------------------------------ */

#define NONE	~0u

static uint64_t number_of(const struct waiting *w)
{
	/* The end of a thread's lane has no number: its last call has been found. */
	return w->over ? 0 : w->event.seq & ORDER_MASK;
}

/* The first of a process's that may come. */
static unsigned next_of(const struct ordered *o, int32_t pid)
{
	unsigned next = NONE;

	for (unsigned i = 0; i < o->n; i++)
		if (first_of(o, i)->told.pid == pid && may_come(o, first_of(o, i)) &&
		    (next == NONE || number_of(first_of(o, i)) < number_of(first_of(o, next))))
			next = i;
	return next;
}

/* Whose was found first; only of those that may come, or of all. */
static unsigned found_first(const struct ordered *o, bool all)
{
	unsigned found = NONE;

	for (unsigned i = 0; i < o->n; i++)
		if ((all || may_come(o, first_of(o, i))) &&
		    (found == NONE ||
		     first_of(o, i)->told.number < first_of(o, found)->told.number))
			found = i;
	return found;
}

/* `all`: nothing more comes, or no more fits. */
static bool go_on(struct ordered *o, bool all)
{
	unsigned found = found_first(o, false);

	if (found == NONE) {
		if (all && o->n)
			first_hand_out(o, found_first(o, true));
		return all && o->n;
	}
	if (!all && first_of(o, found)->told.time_ns + WAIT_NS > o->now_ns)
		return false;
	first_hand_out(o, next_of(o, first_of(o, found)->told.pid));
	return true;
}

static void event_order(struct ordered *o, const struct told *t, bool over)
{
	o->now_ns = t->time_ns > o->now_ns ? t->time_ns : o->now_ns;
	waits_add(o, t, over);
	while (go_on(o, o->bytes > WAIT_MOST))
		;
}

static void told_order(void *ctx, const struct told *t)
{
	struct ordered *o = ctx;

	o->number = t->number;
	event_order(o, t, false);
}

static void frame_order(void *ctx, const struct log_frame *f)
{
	struct ordered *o = ctx;
	struct told t = { .number = o->number, .time_ns = f->time_ns, .lane = f->lane,
			  .life = f->life, .pid = f->pid, .tid = f->tid, .behind = f->at };

	if (f->kind == LOG_CLOSED)
		event_order(o, &t, true);
	if (o->other)
		o->other(o->ctx, f);
}

bool events_ordered(struct frames *f, ordered_take *take, frame_take *other, void *ctx)
{
	struct ordered *o = calloc(1, sizeof(*o));
	bool whole;

	MUST(o && take);
	o->take = take;
	o->dropped = f->dropped;
	o->other = other;
	o->ctx = ctx;
	whole = events_each(f, told_order, frame_order, o);
	while (go_on(o, true))
		;
	free(o);
	return whole;
}
