/*
 * Taking over, failed: the successor was to take what the old leader has, and its time is
 * over.  It is stopped, frozen, in a loop without a call, or waits for what nobody will do.
 *
 * As long as none of it has taken anything there is a way back: the old leader stands, and
 * all it had is its own.  It leads again, as if nothing had been asked; one that was forced
 * out is replaced by the next, or has its end.  Behind that point what has not taken never
 * will: it ends, and that is said.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

#define END_MS		100	/* from SIGKILL to a process's end */
#define TAKE_MOST_MS	60000	/* for one that computes, where there is no other */

/* --- those that are late ------------------------------------------------------------ */

/* The process leads: a thread of it has begun its lane in the new stream. */
static bool has_taken(const struct monitor *m, const struct version *v, pid_t pid)
{
	LANES_EACH(m, v->index, i)
		if (lane_at(m, v->index, i)->pid == pid)
			return true;
	return false;
}

/* It says so before it does, of what it makes without a lane as well. */
static bool has_called(const struct monitor *m, const struct move *mv)
{
	if (CONSUME(area_leads, &mv->to->area->leads) != mv->leads)
		return true;
	LANES_EACH(m, mv->to->index, i)
		if (lane_at(m, mv->to->index, i)->pid)
			return true;
	return false;
}

bool takers_led(const struct monitor *m, const struct move *mv)
{
	for (unsigned i = 0; i < mv->takers; i++) {
		const struct taker *k = &mv->taker[i];

		if (k->version == mv->to && k->answered && !has_taken(m, mv->to, k->request.pid) &&
		    process_began(k->request.pid))
			return false;
	}
	return true;
}

/* One that has not asked for what it is to take computes: it will come to a call, perhaps. */
static bool computes(const struct monitor *m, const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && thread_state(s->pid, (pid_t)s->owner) == 'R' &&
		    !has_taken(m, v, s->pid) && !takers_have(&m->move, v, s->pid))
			return true;
	}
	return false;
}

/* Time goes on while the successor reads on; and while it computes, if nobody else could lead. */
bool move_is_late(struct monitor *m, struct move *mv)
{
	uint64_t lag = streams_unread(m, mv->to->index, mv->from->index), now = now_ms();

	if (lag < mv->lag)
		mv->until_ms = now + TAKE_MS;
	mv->lag = lag;
	if (now < mv->until_ms)
		return false;
	return !mv->forced || successor(m) || now_us() - mv->began_us > TAKE_MOST_MS * 1000ull ||
	       !(computes(m, mv->to) || stages_is_changing(m, mv->to));
}

/* --- the way back --------------------------------------------------------------------- */

static void streams_back(struct monitor *m, const struct move *mv)
{
	struct conduct *c = m->conduct;
	uint32_t from = mv->from->index, to = mv->to->index;

	MUST(to == m->leader && from != to);

	conduct_bit(&c->following, from, false);
	conduct_bit(&c->following, to, false);
	conduct_bit(&c->crashed, from, false);
	c->next[from] = from;
	/* Whose stream goes on is known. */
	PUBLISH(conduct_leader, &c->leader, from);
	/* It goes on only when nothing says any more that it has ended. */
	conduct_bit(&c->ended, from, false);
	streams_changed(m);
}

static void versions_back(struct monitor *m, struct move *mv)
{
	MUST(!mv->parted && mv->to == leading(m));
	mv->from->state = VERSION_LEADS;
	mv->from->parked = false;
	mv->from->why[0] = 0;
	mv->to->state = VERSION_FOLLOWS;
	m->leader = mv->from->index;
	mv->untolds = 0;
}

/*
 * One of its processes cannot take, or not in time.  The old leader goes on if it can, or
 * another follower is asked, which may be sound; but where all that have yet to take compute, or
 * there is nobody else, those that are ready lead.  Where none is ready yet, one that cannot ends
 * alone, and the others have the time that they had.
 */
enum move_event move_weigh(struct monitor *m, struct move *mv)
{
	bool back = !mv->taken && mv->from->state == VERSION_LEAVES && version_alive(mv->from);
	unsigned ready = takers_hear(mv);

	MUST(mv->from != mv->to && mv->to == leading(m));
	if (back && !mv->forced)
		return MOVE_undone;
	if (back && successor(m) && (mv->lacks[0] || !ready || !computes(m, mv->to)))
		return MOVE_undone;
	if (mv->lacks[0] && takers_end(m, mv) && !ready && !move_is_late(m, mv))
		return MOVE_nothing;
	return ready ? MOVE_ready : back ? MOVE_undone : MOVE_parted;
}

/*
 * The successor has been answered, and nobody of it has made a call: it cannot any more when it
 * has been ended, and the old leader, all of which stands, goes on as if it had never been ready.
 */
bool move_unheard(struct monitor *m, struct move *mv)
{
	if (mv->parted || mv->from->state != VERSION_LEAVES || !version_alive(mv->from) ||
	    has_called(m, mv))
		return false;
	/* What is left of it is better than nothing; but one that has yet to come has nothing. */
	if (mv->forced && version_alive(mv->to) && !successor(m) && !takers_unasked(mv))
		return false;
	version_kill(mv->to);
	for (unsigned ms = 0; version_alive(mv->to) && ms < END_MS; ms++)
		usleep(1000);
	if (version_alive(mv->to) || has_called(m, mv))
		return false;
	if (!mv->lacks[0] && !takers_unasked(mv))
		snprintf(mv->lacks, sizeof(mv->lacks), "it has not led");
	return true;
}

/* Whom the others have waited for. */
static void late_say(const struct monitor *m, const struct move *mv)
{
	say_log("take", "%u processes are due, %u have asked", mv->due, mv->takers);
	for (uint32_t i = 0; i < version_slots(mv->to); i++) {
		const struct slot *s = &mv->to->area->slot[i];
		uint32_t lane = s->lane - 1;

		if (s->owner && !takers_have(mv, mv->to, s->pid))
			say_log("take", "thread %d of process %d, lane %u: %c, asks %u, %s",
				(int)s->owner, s->pid, lane,
				thread_state(s->pid, (pid_t)s->owner), s->asked,
				lane_is(m, lane) && streams_lane_unread(m, mv->to->index,
					mv->from->index, lane) ? "not read" : "read");
	}
}

/* The old leader leads again, or is replaced by the next, or ends of itself. */
enum move_event move_switch_back(struct monitor *m, struct move *mv)
{
	struct version *from = mv->from, *to = mv->to;
	enum move_event next;

	late_say(m, mv);
	version_kill(to);
	take_over();
	takers_forget(mv);
	streams_back(m, mv);
	versions_back(m, mv);
	if (mv->lacks[0])
		follower_drop(to, VERDICT_LAGGING, "it was to lead, and could not: %s", mv->lacks);
	else
		follower_drop(to, VERDICT_LAGGING,
			      "it was to lead, and did not take over in %lu ms",
			      (now_us() - mv->began_us) / 1000);
	session_note(m);
	streams_led(m);
	next = mv->forced ? move_failure(from, mv->cause) : MOVE_nothing;
	if (next == MOVE_fails)
		return next;
	unpark(m, from->index);
	held_leave(m, from, 0);
	return next;
}

/* --- the way on ----------------------------------------------------------------------- */

/* What has not taken never will, for what it was to take goes with the old leader. */
static unsigned late_end(const struct monitor *m, const struct version *v)
{
	unsigned n = 0;

	MUST(v == m->move.to);

	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid > 0 && !has_taken(m, v, s->pid))
			n += version_kill_one(v, s->pid);
	}
	return n;
}

enum move_event move_end_late(struct monitor *m, struct move *mv)
{
	enum move_event next;
	unsigned lost;

	MUST(mv->to == leading(m));
	if (mv->taken && move_unheard(m, mv))
		return MOVE_undone;
	lost = late_end(m, mv->to);
	if (lost)
		say_error(NULL, "%s: %u processes of %s have not taken over, and are ended",
			  m->session.name, lost, mv->to->name);
	if (mv->taken)
		return MOVE_all;
	next = move_failure(mv->to, "did not take over in time");
	if (next == MOVE_fails)
		return next;
	say_error(NULL, "%s: no version is left that can go on", m->session.name);
	return MOVE_all;
}

/* --- one that is stopped -------------------------------------------------------------- */

/* The service comes first, whoever has stopped it, and what for. */
void successor_continue(const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];
		/* Another may come to stand there while we look. */
		pid_t pid = __atomic_load_n(&s->pid, __ATOMIC_RELAXED);

		if (s->owner && pid > 0 && thread_state(pid, (pid_t)s->owner) == 'T')
			version_signal_one(v, pid, SIGCONT);
	}
}
