/*
 * Taking over: one version becomes the leader in the place of another.
 *
 * The old leader's threads stop where no call is half told (its `park` bit, and
 * a SIGSYS to each).  Then the streams are switched: its stream has ended, the
 * successor's is empty and goes on from there, and nobody waits for anybody.
 * What is still unread of the old stream the successor reads as a follower;
 * where a process of it comes to the end it asks for its twin's descriptors
 * (take.c) and makes its calls for real.  Only then the twin is killed, or let
 * die of what it crashed of; with --keep the old leader goes on as a follower.
 *
 * A successor may fail in its turn, even before it has taken anything: then the
 * next one takes from whoever still holds the descriptors, see take.c.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/control/control.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"
#include "engine/outside/takeover/untold.h"

#define HASTEN_US	1000
#define LOOK_MS		50
#define ASKED_MS	1	/* the same, where somebody waits to hear of it */
#define CRASH_US	1000000	/* what is older was another crash */
#define REPORT_MS	10000	/* of a sanitizer in the only follower */
#define LED_MS		100	/* from its descriptors to the first call of its own */

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* --- its course ---------------------------------------------------------------------- */

/* All have their descriptors; those that live say when they led. */
static bool move_done(struct move *mv)
{
	const struct area *a = mv->to->area;
	/* The time is the last one's. */
	uint32_t lead = CONSUME(area_leads, &a->leads) - mv->leads;

	MUST(mv->to && mv->due);

	if (mv->taken < mv->due)
		return false;
	if (lead >= mv->taken && a->lead_ns / 1000 > mv->began_us)
		mv->ready_us = a->lead_ns / 1000 - mv->began_us;
	return lead >= mv->taken || now_ms() >= mv->taken_ms + LED_MS;
}

/* Clients wait: what the successor asks for is looked for, not waited for. */
static void move_hasten(struct monitor *m, struct move *mv)
{
	for (uint64_t begin = now_us(); now_us() - begin < HASTEN_US && !move_done(mv);) {
		serve_all(m);
		sched_yield();
	}
}

static bool move_start(struct monitor *m, struct move *mv)
{
	bool stands;

	mv->prepares = true;
	stands = leader_stop(m, mv);
	mv->prepares = false;
	if (!stands && !mv->forced) {
		unpark(m, mv->from->index);
		return false;
	}
	MUST(mv->from->index == m->leader && mv->to != mv->from);
	mv->stopped_us = now_us() - mv->began_us;
	processes_left(mv);
	mv->due = mv->processes > mv->due ? mv->processes : mv->due;
	untold_look(m);
	session_note(m, mv->to);
	streams_switch(m, mv);
	say_log("take", "%lu us after the beginning: streams switched; %lu cells are to be read",
		now_us() - mv->began_us, streams_unread(m, mv->to->index, mv->from->index));
	versions_switch(m, mv);
	mv->active = true;
	mv->until_ms = now_ms() + (mv->forced ? TAKE_MS : TAKE_PLANNED_MS);
	mv->lag = streams_unread(m, mv->to->index, mv->from->index);
	held_void(m, REQ_VERDICT, ANSWER_RETRY);
	if (mv->processes)
		mv->taken_us += take_prepare(m, mv->process[0]);
	monitor_wake_after(m, LOOK_MS);
	return true;
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
static void move_end(struct monitor *m)
{
	struct move *mv = &m->move;

	MUST(mv->active && mv->to->index == m->leader);
	take_over();
	if (mv->taken)
		move_say(m, mv);
	session_note(m, NULL);
	mv->active = false;
	for (unsigned i = 0; i < m->versions; i++)
		version_leave(m, &m->version[i], mv->keep && mv->from->index == i);
}

static void move_look(struct monitor *m, struct move *mv)
{
	MUST(mv->active && mv->to == leading(m));
	if (move_done(mv))
		move_end(m);
	else if (move_late(m, mv) && move_fail(m) == FAILING_ENDS)
		move_end(m);
	else if (mv->active && mv->forced)	/* it may have been stopped meanwhile */
		successor_continue(mv->to);
}

/*
 * Who asked for it is told how it ends, when it does: all was read before, so that it is a
 * matter of microseconds, or of many processes, or fails.
 */
static void asked_look(struct monitor *m, struct move *mv)
{
	struct version *to = mv->asked;

	if (!to)
		return;
	if (mv->active && !mv->wanted) {
		if (!version_alive(to))
			mv->until_ms = 0;
		return;
	}
	mv->asked = NULL;
	control_promoted(m, leading(m) == to ? NULL : to->why);
}

/* --- what begins one ------------------------------------------------------------------ */

/* When it began: the thread that crashed has said so, or now. */
static uint64_t crash_us(const struct version *v)
{
	uint64_t now = now_us(), said = v->area->crash_ns / 1000;

	v->area->crash_ns = 0;
	return said <= now && now - said < CRASH_US ? said : now;
}

/*
 * The leader fails while it is being replaced: in another thread, perhaps of the same.  That
 * is no failure of its successor's; but of one that was planned there is no way back.
 */
static void move_force(struct move *mv, const char *cause)
{
	if (mv->forced)
		return;
	mv->forced = true;
	mv->keep = mv->reads_on = false;
	snprintf(mv->cause, sizeof(mv->cause), "%s", cause);
}

/* The leader cannot go on: a follower is to take over.  False: there is none. */
bool takeover_want(struct version *from, const char *cause, bool forced)
{
	struct monitor *m = from->monitor;
	struct move *mv = &m->move;

	if (mv->wanted)
		return true;
	MUST(from->monitor->conduct);
	if (mv->prepares) {
		move_force(mv, cause);
		return true;
	}
	if (!successor(m))
		return false;
	mv->next_us = crash_us(from);
	mv->wanted = true;
	mv->wanted_forced = forced;
	mv->report_ms = now_ms() + REPORT_MS;
	snprintf(mv->next_cause, sizeof(mv->next_cause), "%s", cause);
	return true;
}

bool takeover_keeps(const struct monitor *m, const struct version *v)
{
	return m->move.wanted ? v->index == m->leader || v->state == VERSION_LEAVES :
	       m->move.active && v->state == VERSION_LEAVES;
}

void takeover_missed(const struct version *from, const char *cause)
{
	const struct monitor *m = from->monitor;

	for (unsigned i = 0; i < m->versions; i++) {
		const struct version *v = &m->version[i];

		if (m->conduct->following >> i & 1 && successor_barred(m, v))
			say_error(NULL, "%s: %s %s; %s does not go on in its place: %s",
				  m->session.name, from->name, cause, v->name,
				  successor_barred(m, v));
	}
}

static void move_clear(struct monitor *m, struct version *to, const char *cause)
{
	struct move *mv = &m->move;

	/* What one that failed had yet to take is to be taken all the same. */
	MUST(to->index != m->leader);
	mv->due = mv->active ? mv->due : 1;
	mv->untolds = mv->active ? mv->untolds : 0;
	mv->from = leading(m);
	mv->to = to;
	snprintf(mv->cause, sizeof(mv->cause), "%s", cause);
	mv->wanted = mv->keep = mv->differs = false;
	mv->descriptors = mv->taken = mv->retries = 0;
	mv->taken_us = mv->ready_us = 0;
	memset(mv->retried, 0, sizeof(mv->retried));
	mv->processes = 0;
	mv->leads = to->area->leads;
}

/* Nobody can take over: what waits for it goes on to its end. */
static void takeover_none(struct monitor *m)
{
	if (m->move.wanted_forced)
		say_error(NULL, "%s: %s %s, and no follower can go on in its place",
			  m->session.name, leading(m)->name, m->move.next_cause);
	m->move.wanted = false;
	held_leave(m, leading(m), 0);
}

static void takeover_begin(struct monitor *m)
{
	struct move *mv = &m->move;
	struct version *to = successor(m);

	if (!to) {
		takeover_none(m);
		return;
	}
	/* The only one there is.  It may end by what it reports, or go on behind it. */
	if (mv->wanted_forced && follower_reports(to) && now_ms() < mv->report_ms) {
		monitor_wake_after(m, LOOK_MS);
		return;
	}
	move_clear(m, to, mv->next_cause);
	mv->began_us = mv->next_us;
	mv->forced = mv->wanted_forced;
	mv->reads_on = false;
	MUST(to->index != m->leader && to->state == VERSION_FOLLOWS);
	say_log("take", "%s is to lead, %lu us after the beginning", to->name,
		now_us() - mv->began_us);
	old_stream_read(m, to, true);
	successor_settled(to);
	if (move_start(m, mv))
		move_hasten(m, mv);
	else
		takeover_none(m);
}

const char *takeover_refused(struct monitor *m, const struct version *to, bool *passes)
{
	*passes = false;
	if (to->state != VERSION_FOLLOWS && to->state != VERSION_STARTING &&
	    to->state != VERSION_LEAVES)
		return "it has ended, or leads";
	if (to->state == VERSION_FOLLOWS && !version_alive(to))
		return "it has ended";
	if (successor_barred(m, to))
		return successor_barred(m, to);
	*passes = true;
	if (m->move.active || m->move.wanted || to->state == VERSION_LEAVES)
		return "another takeover is under way";
	if (to->state == VERSION_STARTING)
		return "it has not begun";
	if (!old_stream_over(m, to))
		return "another follower still reads what it told when it led";
	if (!successor_settled(to))
		return "some of its threads do not follow yet";
	return successor_has_room(m, to) ? NULL : "a process of it has a hard limit of descriptors "
		"(RLIMIT_NOFILE) that the leader's do not fit into";
}

int takeover_promote(struct monitor *m, struct version *to, enum promotion how, char *why,
		     size_t size)
{
	bool keep = how == PROMOTE_KEEP, passes;
	const char *no = takeover_refused(m, to, &passes);
	struct move *mv = &m->move;

	snprintf(why, size, "%s", no ? no : "");
	if (no)
		return -EBUSY;
	move_clear(m, to, keep ? "follows it" : "replaced");
	mv->forced = false;
	mv->keep = keep;
	mv->reads_on = how != PROMOTE_DIFFERS;
	mv->began_us = now_us();
	if (!move_start(m, mv)) {
		snprintf(why, size, "%s", mv->cause);
		return -ETIMEDOUT;
	}
	/* By policy: a thread of it waits to hear that it is right. */
	if (how == PROMOTE_DIFFERS)
		return 0;
	mv->asked = to;
	move_hasten(m, mv);
	return 0;
}

/* --- while it lasts ------------------------------------------------------------------- */

/* Those that crashed and were to die by themselves. */
static void dying_look(struct monitor *m)
{
	uint64_t now = now_ms();

	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (!v->dying_ms)
			continue;
		if (v->dying_ms > now) {
			monitor_wake_after(m, (unsigned)(v->dying_ms - now));
			continue;
		}
		v->dying_ms = 0;
		version_kill(v);
	}
}

void takeover_look(struct monitor *m)
{
	struct move *mv = &m->move;

	dying_look(m);
	asked_look(m, mv);
	if (mv->wanted)
		takeover_begin(m);
	if (!mv->active)
		return;
	move_look(m, mv);
	asked_look(m, mv);
	if (mv->active || mv->wanted)
		monitor_wake_after(m, mv->wanted ? 0 : mv->asked ? ASKED_MS : LOOK_MS);
}
