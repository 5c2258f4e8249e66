/*
 * The course of a takeover runs from a table, moves.def: this looks up what is done when
 * something happens, and has those functions of the table that choose a successor, go over to
 * its streams and look whether all has been taken.  What can still be undone is in
 * takeover_prepare.c, who does not take in time in takeover_fail.c.
 *
 * What happens while a function of the table runs (the leader crashes while it is being
 * stopped) is looked up at once, with the state that the function was run in.
 */
#include <stdio.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/late/past.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"
#include "engine/outside/takeover/untold.h"

#define HASTEN_US	1000
#define LOOK_MS		50
#define CRASH_US	1000000	/* what is older was another crash */
#define REPORT_MS	10000	/* of a sanitizer in the only follower */

/* --- the table ------------------------------------------------------------------------ */

static const struct row {
	enum move_event (*act)(struct monitor *m, struct move *mv);	/* NULL: it cannot be */
	enum move_state next;
} table[MOVE_STATES][MOVE_nothing] = {
#define ON(state, event, act, next) \
	[MOVE_IS_##state][MOVE_##event] = { move_##act, MOVE_IS_##next },
#include "engine/outside/takeover/moves.def"
};

static const char *const state_name[] = {
#define STATE(name, ...) #name,
#include "engine/outside/takeover/moves.def"
};

static const char *const event_name[] = {
#define EVENT(name, ...) #name,
#include "engine/outside/takeover/moves.def"
};

void takeover_event(struct monitor *m, enum move_event event)
{
	struct move *mv = &m->move;

	while (event != MOVE_nothing) {
		const struct row *r = &table[mv->state][event];

		MUST(r->act);
		if (r->next != mv->state)
			say_log("take", "%s: %s, now %s", state_name[mv->state],
				event_name[event], state_name[r->next]);
		mv->state = r->next;
		event = r->act(m, mv);
	}
}

enum move_event move_do_nothing(struct monitor *m, struct move *mv)
{
	MUST(mv == &m->move);
	return MOVE_nothing;
}

/* --- who leads next -------------------------------------------------------------------- */

/* When it began: the thread that crashed has said so, or now. */
static uint64_t crash_us(const struct version *v)
{
	uint64_t now = now_us(), said = v->area->crash_ns / 1000;

	v->area->crash_ns = 0;
	return said <= now && now - said < CRASH_US ? said : now;
}

enum move_event move_failure(const struct version *from, const char *cause)
{
	struct move *mv = &from->monitor->move;

	MUST(from->monitor->conduct);
	mv->found = successor(from->monitor);
	if (!mv->found && !rewind_busy(from->monitor))
		return MOVE_nothing;
	mv->next_us = crash_us(from);
	mv->report_ms = now_ms() + REPORT_MS;
	snprintf(mv->next_cause, sizeof(mv->next_cause), "%s", cause);
	return MOVE_fails;
}

void move_clear(struct monitor *m, struct version *to, const char *cause, uint64_t began_us)
{
	struct move *mv = &m->move;
	bool goes_on = takeover_switched(m);

	/* What one that failed had yet to take is to be taken all the same. */
	MUST(to->index != m->leader);
	rewind_forget_all(m);
	mv->due = goes_on ? mv->due : 1;
	mv->untolds = goes_on ? mv->untolds : 0;
	mv->from = leading(m);
	mv->to = to;
	snprintf(mv->cause, sizeof(mv->cause), "%s", cause);
	mv->began_us = began_us;
	mv->forced = mv->keep = mv->differs = mv->parted = false;
	mv->descriptors = mv->taken = mv->sent = mv->retries = 0;
	mv->lacks[0] = 0;
	mv->taken_us = mv->ready_us = 0;
	memset(mv->retried, 0, sizeof(mv->retried));
	mv->processes = 0;
	mv->leads = to->area->leads;
}

static enum move_event chosen(struct monitor *m, struct move *mv, struct version *to)
{
	MUST(to->index != m->leader && to->state == VERSION_FOLLOWS);
	move_clear(m, to, mv->next_cause, mv->next_us);
	mv->forced = true;
	say_log("take", "%s is to lead, %lu us after the beginning", to->name,
		now_us() - mv->began_us);
	old_stream_read(m, to, true);
	successor_settled(to);
	return MOVE_chosen;
}

enum move_event move_choose(struct monitor *m, struct move *mv)
{
	struct version *to = successor_found(m, mv);

	MUST(takeover_wanted(m));
	/* One that goes back to its image is there in a moment, or it is not. */
	if (rewind_busy(m) && now_ms() < mv->report_ms) {
		monitor_wake_after(m, LOOK_MS);
		return MOVE_nothing;
	}
	if (!to)
		return MOVE_nobody;
	/* The only one there is.  It may end by what it reports, or go on behind it. */
	if (!follower_reports(to))
		return chosen(m, mv, to);
	if (now_ms() >= mv->report_ms)
		return MOVE_late;
	monitor_wake_after(m, LOOK_MS);
	return MOVE_nothing;
}

enum move_event move_take_any(struct monitor *m, struct move *mv)
{
	struct version *to = successor(m);

	MUST(takeover_wanted(m));
	return to ? chosen(m, mv, to) : MOVE_nobody;
}

/* Nobody can take over: what waits for it goes on to its end. */
enum move_event move_let_end(struct monitor *m, struct move *mv)
{
	MUST(!takeover_wanted(m));
	say_error(NULL, "%s: %s %s, and no follower can go on in its place",
		  m->session.name, leading(m)->name, mv->next_cause);
	held_leave(m, leading(m), 0);
	take_over();
	return MOVE_nothing;
}

/* --- its streams go on ------------------------------------------------------------------ */

/* Those that were answered have said that they lead, or begun to; or have ended. */
static bool all_lead(struct monitor *m, struct move *mv)
{
	const struct area *a = mv->to->area;
	/* The time is the last one's. */
	uint32_t lead = CONSUME(area_leads, &a->leads) - mv->leads;

	MUST(mv->to == leading(m));
	if (lead >= mv->taken && a->lead_ns / 1000 > mv->began_us)
		mv->ready_us = a->lead_ns / 1000 - mv->began_us;
	return lead >= mv->taken || takers_led(m, mv);
}

bool move_is_last(const struct move *mv)
{
	return mv->state == MOVE_IS_receives && mv->forced && !mv->others;
}

/*
 * Whether they lead from now on.  All together, for there is no way back from there; but at
 * once where that leads nowhere: the old leader cannot go on, and nobody else could lead.
 */
enum move_event move_look_ready(struct monitor *m, struct move *mv)
{
	unsigned ready = takers_hear(mv);

	MUST(mv->to == leading(m) && mv->due);
	if (mv->taken)
		return MOVE_ready;
	if (mv->lacks[0])
		return MOVE_lacks;
	if (ready >= mv->due || taker_is_guest(mv) || (ready && move_is_last(mv)))
		return MOVE_ready;
	if (move_is_late(m, mv))
		return MOVE_late;
	if (mv->forced)		/* it may have been stopped meanwhile */
		successor_continue(mv->to);
	return MOVE_nothing;
}

/*
 * Clients wait: the successor's bell is waited for here, without its thread and the loop.  We
 * sleep, for it may be that it has no other processor than ours.
 */
static void move_hasten(struct monitor *m, struct move *mv)
{
	uint64_t begin = now_us();
	uint32_t heard[VERSIONS];
	unsigned n;

	while (now_us() - begin < HASTEN_US) {
		n = versions_heard(m, heard);
		m->asked_soon = false;
		serve_all(m);
		if (mv->state != MOVE_IS_receives || mv->lacks[0] || mv->taken ||
		    takers_hear(mv) >= mv->due)
			return;
		if (!versions_ring(m, heard, n, m->asked_soon ? SOON_US : HASTEN_US))
			return;
	}
}

enum move_event move_switch_over(struct monitor *m, struct move *mv)
{
	MUST(mv->from->index == m->leader && mv->to != mv->from);
	mv->stopped_us = now_us() - mv->began_us;
	session_expect(m, mv->to);
	processes_left(mv);
	mv->due = mv->processes > mv->due ? mv->processes : mv->due;
	mv->others = mv->forced && successor_besides(m, mv->to);
	wire_begin(m, mv);
	streams_switch(m, mv);
	say_log("take", "%lu us after the beginning: streams switched; %lu cells are to be read",
		now_us() - mv->began_us, streams_unread(m, mv->to->index, mv->from->index));
	versions_switch(m, mv);
	mv->until_ms = now_ms() + (mv->forced ? TAKE_MS : TAKE_PLANNED_MS);
	mv->lag = streams_unread(m, mv->to->index, mv->from->index);
	held_void(m, REQ_VERDICT, ANSWER_RETRY);
	/* While the successor comes: nothing of this is needed before it has been served. */
	untold_look(m);
	if (mv->processes)
		mv->taken_us += take_prepare(m, mv->process[0]);
	wire_rights(mv);
	take_unasked(m, mv);
	say_log("take", "%u processes are to take; %s", mv->due,
		mv->others ? "another follower could lead" : "nobody else could lead");
	monitor_wake_after(m, LOOK_MS);
	if (mv->differs)	/* a thread of it waits for us */
		return MOVE_nothing;
	move_hasten(m, mv);
	return mv->state == MOVE_IS_receives ? move_look_ready(m, mv) : MOVE_nothing;
}

/* --- who has taken ---------------------------------------------------------------------- */

/* They may lead: there is a way back only as long as nobody has made a call of its own. */
enum move_event move_commit(struct monitor *m, struct move *mv)
{
	MUST(mv->to == leading(m) && !takeover_wanted(m));
	/* One may have ended since it was ready. */
	takers_hear(mv);
	if (mv->lacks[0] && move_unheard(m, mv))
		return MOVE_undone;
	takers_lead(m, mv);
	return MOVE_nothing;
}

enum move_event move_look_taken(struct monitor *m, struct move *mv)
{
	MUST(mv->to == leading(m));
	if (takers_hear(mv))
		takers_lead(m, mv);
	if (mv->lacks[0])
		takers_end(m, mv);
	if (!version_alive(mv->to) && move_unheard(m, mv))
		return MOVE_undone;
	if (all_lead(m, mv)) {
		takers_part(m, mv);
		if (mv->taken >= mv->due && !takers_wait(mv))
			return MOVE_all;
	}
	if (move_is_late(m, mv))
		return MOVE_late;
	if (mv->forced)
		successor_continue(mv->to);
	return MOVE_nothing;
}

static void move_say(const struct monitor *m, const struct move *mv)
{
	say_error(NULL, "%s: %s leads (%s %s): stopped after %lu us, %u descriptors in %lu us, "
		  "running after %lu us", m->session.name, mv->to->name, mv->from->name, mv->cause,
		  mv->stopped_us, mv->descriptors, mv->taken_us, mv->ready_us);
}

/* A version that stood still follows now, or ends. */
static void version_leave(struct monitor *m, struct version *v, bool keep)
{
	if (v->state != VERSION_LEAVES)
		return;
	MUST(v->index != m->leader);
	if (keep) {
		v->state = VERSION_FOLLOWS;
		v->parked = false;
		unpark(m, v->index);
		return;
	}
	held_leave(m, v, 0);
	v->state = VERSION_ENDED;
	if (!v->dying_ms)
		version_kill(v);
}

/* All is taken, or will never be. */
enum move_event move_end(struct monitor *m, struct move *mv)
{
	MUST(mv->to->index == m->leader);
	streams_led(m);
	take_over();
	takers_forget(mv);
	rewind_over(m);
	if (mv->taken) {
		move_say(m, mv);
		past_stood(m, PAUSE_takeover, mv->ready_us);
	}
	if (session_look(m))
		session_note(m);
	for (unsigned i = 0; i < m->versions; i++)
		version_leave(m, &m->version[i], mv->keep && mv->from->index == i);
	return MOVE_nothing;
}
