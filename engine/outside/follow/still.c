/*
 * Followers that do not move, and those that hold their leader up.
 *
 * A thread of a follower that has events to read takes one sooner or later, or computes, or
 * waits for another that does.  One that sleeps for --still with its lane unread waits for
 * what will not come: it has gone another way than its leader, in a wait that no call shows
 * (a futex, a flag).  Such a version cannot lead: that is a verdict, and not an accident of
 * the day when it is needed.
 *
 * For how long it sleeps says nothing by itself: what it waits for may come behind all that a
 * whole ring has for the others, and on a busy machine that is minutes.  So it is asked whether
 * it waits for anybody.  One of the process that has an older event comes first, and is judged
 * if it sleeps; one that runs, or would with a processor, may be whom it waits for.  Where one
 * runs for ever the process' own time says so.  One that waits again and again for a condition
 * that its leader did not wait for, which ends at once, sleeps as well, awake as it may be when it
 * is looked at: it counts such waits (`idles`).  And nobody is judged who waits for the leader,
 * which may have told half an event, and have no processor for the rest, or for the monitor.
 *
 * A follower that is a whole ring behind, but moves, makes its leader wait, each time for
 * less than --full-ms.  That is said.
 */
#include <stdio.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/still.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/record/recorder.h"
#include "engine/outside/report/report.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/takeover/takeover.h"

#define ASKED_MS	1000	/* it has slept so long when others are looked at */
#define CPU_SHARE	4	/* as much of a processor, for one that others may have had */
#define WAITED_LOOK_MS	1000
#define WAITED_SHARE	10	/* percent of the time that are worth a word */

/* --- that stand ------------------------------------------------------------------- */

/* A lane's thread when it was looked at last, and whether it had waited again by then. */
struct idle {
	uint64_t ms;
	pid_t tid;
	uint32_t waits;
	bool again;
};

/* Since when a lane's reader has slept in front of the same event, and waited for nobody. */
static struct seen {
	uint64_t at, since_ms;
	uint64_t used_ms;	/* by its process, when others were first looked at; 0: not yet */
	uint64_t asked_ms;	/* when others were looked at last */
	struct idle idle;
} seen[VERSIONS][LANES_ALL];

/*
 * Its leader has still to do something for it: to tell the rest of an event that is half told, or,
 * where a debugger holds it, to wake it.
 */
static bool waits_for_leader(const struct monitor *m, const struct version *v, uint32_t lane)
{
	const struct lane *l = lane_at(m, m->leader, lane);
	/* In a replay they are another day's. */
	char state = m->options->replay ? 0 : thread_state(l->pid, (pid_t)l->owner);

	return state == 't' || state == 'T' || streams_lane_waits(m, v->index, m->leader, lane);
}

static uint32_t idle_waits(const struct version *v, pid_t tid)
{
	for (uint32_t i = 0; i < version_slots(v); i++)
		if ((pid_t)v->area->slot[i].owner == tid)
			return v->area->slot[i].idles;
	return 0;
}

/* Looked at now and then: from one time to the next. */
static bool thread_idles(const struct monitor *m, const struct version *v, uint32_t lane)
{
	pid_t tid = (pid_t)cursor_at(m, v->index, lane)->owner;
	struct idle *was = &seen[v->index][lane].idle;
	struct idle is = { .ms = now_ms(), .tid = tid };

	if (was->tid == tid && is.ms < was->ms + ASKED_MS)
		return was->again;
	is.waits = idle_waits(v, tid);
	is.again = was->tid == tid && is.waits != was->waits;
	*was = is;
	return is.again;
}

static bool thread_works(const struct monitor *m, const struct version *v, uint32_t lane)
{
	const struct cursor *c = cursor_at(m, v->index, lane);

	return thread_runs(c->pid, c->owner) && !thread_idles(m, v, lane);
}

/* Now, or again and again. */
static bool thread_sleeps(const struct monitor *m, const struct version *v, uint32_t lane)
{
	const struct cursor *c = cursor_at(m, v->index, lane);
	char state = thread_state(c->pid, c->owner);

	return state == 'S' || (state == 'R' && thread_idles(m, v, lane));
}

/* It has asked us, who may have had no processor. */
static bool waits_for_monitor(const struct version *v, pid_t tid)
{
	for (uint32_t i = 0; i < version_slots(v); i++)
		if ((pid_t)v->area->slot[i].owner == tid)
			return v->area->slot[i].asked == RS_ASKED;
	return false;
}

/* It has something to read, and sleeps all the same. */
static bool reader_sleeps(const struct monitor *m, const struct version *v, uint32_t lane)
{
	const struct cursor *c = cursor_at(m, v->index, lane);

	return streams_lane_unread(m, v->index, m->leader, lane) && c->source == m->leader &&
	       c->life == lane_at(m, m->leader, lane)->life &&
	       thread_sleeps(m, v, lane) && !waits_for_leader(m, v, lane) &&
	       !waits_for_monitor(v, (pid_t)c->owner) &&
	       !stream_only_looks(m->realm[lane / LANES].conduct, v->index, lane % LANES);
}

static uint64_t next_of(const struct monitor *m, const struct version *v, uint32_t lane)
{
	return stream_next(m->realm[lane / LANES].conduct, v->index, lane % LANES);
}

/* The other lane is read by a thread of the process that comes first, or may be at work. */
static bool comes_first(const struct monitor *m, const struct version *v, uint32_t other,
			uint64_t than)
{
	uint64_t next = streams_lane_unread(m, v->index, m->leader, other) ?
			next_of(m, v, other) : 0;

	return (next && next < than) || thread_works(m, v, other);
}

static bool waits_for_another(const struct monitor *m, const struct version *v, uint32_t lane)
{
	pid_t pid = cursor_at(m, v->index, lane)->pid;
	uint64_t next = next_of(m, v, lane);

	LANES_EACH(m, m->leader, i) {
		const struct cursor *c = cursor_at(m, v->index, i);

		if (i != lane && c->pid == pid && c->source == m->leader &&
		    c->life == lane_at(m, m->leader, i)->life && c->done != c->life &&
		    comes_first(m, v, i, next))
			return true;
	}
	return false;
}

/* Now and then: others may be many. */
static bool waits_still(const struct monitor *m, const struct version *v, uint32_t lane,
			struct seen *s, uint64_t now)
{
	uint64_t used;

	if (now < s->since_ms + ASKED_MS || now < s->asked_ms + ASKED_MS)
		return false;
	s->asked_ms = now;
	used = process_used_ms(cursor_at(m, v->index, lane)->pid);
	s->used_ms = s->used_ms ? s->used_ms : used;
	return used < s->used_ms + CPU_SHARE * m->options->still_ms &&
	       waits_for_another(m, v, lane);
}

static uint64_t lane_stands(const struct monitor *m, const struct version *v, uint32_t lane,
			    uint64_t now)
{
	uint64_t at = __atomic_load_n(&cursor_at(m, v->index, lane)->at,
				      __ATOMIC_RELAXED);
	struct seen *s = &seen[v->index][lane];

	MUST(v->index < VERSIONS && lane < LANES_ALL);
	if (s->at != at || !s->since_ms)
		*s = (struct seen){ .at = at, .since_ms = now };
	else if (!reader_sleeps(m, v, lane) || waits_still(m, v, lane, s, now))
		s->since_ms = now;
	return now - s->since_ms;
}

/*
 * A version that is about to be judged, waits for its monitor or joins stands for another
 * reason.
 */
static bool may_stand(const struct monitor *m, const struct version *v)
{
	return takeover_any(m) || v->state != VERSION_FOLLOWS || v->parked ||
	       v->judge_ms || follower_reports(v) || held_any(m, v, REQ_VERDICT) ||
	       v->join == JOIN_READS || v->join == JOIN_WAITS || stages_is_changing(m, v);
}

uint64_t still_look(struct monitor *m, struct version *v, pid_t *tid)
{
	uint64_t now = now_ms(), most = 0;

	if (may_stand(m, v)) {
		memset(seen[v->index], 0, m->realms * LANES * sizeof(seen[0][0]));
		return 0;
	}
	LANES_EACH(m, m->leader, i) {
		uint64_t ms = lane_stands(m, v, i, now);

		if (ms <= most)
			continue;
		most = ms;
		*tid = cursor_at(m, v->index, i)->owner;
	}
	return most;
}

/* --- that hold up ------------------------------------------------------------------ */

static const struct version *furthest_behind(const struct monitor *m)
{
	const struct version *worst = NULL;
	uint64_t most = 0, cells;

	for (unsigned i = 0; i < m->versions; i++) {
		const struct version *v = &m->version[i];

		if (!(m->conduct->following >> i & 1) || !streams_lag(m, i, &cells) ||
		    cells < most)
			continue;
		most = cells;
		worst = v;
	}
	return worst;
}

/* The first time, and then when it has been twice as much. */
void still_waits_look(struct monitor *m)
{
	static uint64_t next_ms, last_ns, said_ns;
	uint64_t now = now_ms(), ns = streams_waited_ns(m, m->leader), share;
	const struct version *v;

	if (now < next_ms)
		return;
	share = ns > last_ns ? (ns - last_ns) / (WAITED_LOOK_MS * 10000ull) : 0;
	last_ns = ns;
	next_ms = now + WAITED_LOOK_MS;
	if (m->conduct->when_full == WHEN_FULL_BLOCK || share < WAITED_SHARE || ns < 2 * said_ns)
		return;
	said_ns = ns;
	v = furthest_behind(m);
	say_error("a larger --ring, or --full-ms, by which it is dropped sooner",
		  "%s: %s is held up by %s, a whole ring behind: it waits %lu %% of its time",
		  m->session.name, leading(m)->name, v ? v->name :
		  recorder_is() ? "its recorder" : "a follower",
		  share > 100 ? 100 : share);
}
