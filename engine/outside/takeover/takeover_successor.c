/*
 * Taking over: who may lead.
 */
#include <stddef.h>
#include <stdint.h>

#include "engine/abi/rules.h"
#include "engine/core/must.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

#define DIFFERS_LAG	(1ull << 62)
#define DYING_LAG	(1ull << 63)

bool version_faults(const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++)
		if (v->area->slot[i].owner && v->area->slot[i].faulting)
			return true;
	return false;
}

/* Of a stateless server some connections may have been kept from it. */
static bool knows_all(const struct monitor *m, const struct version *v)
{
	const struct version *leader = &m->version[m->leader];
	bool all = !v->partly;

	if (!m->options->sampling.stateless)
		return all;
	for (uint32_t i = 0; all && i < version_slots(leader); i++)
		all = !leader->area->slot[i].conns_kept;
	return all;
}

/* What it wants to do next on each connection need not be what the leader would have done. */
static bool is_apart(const struct version *v)
{
	return v->brief->rules && v->brief->bank[v->brief->rules % 2].flags & RULES_HAS_APART;
}

static const char *barred(const struct monitor *m, const struct version *v,
			  bool (*is_closed)(const struct version *v))
{
	if (!knows_all(m, v))
		return "it does not know all connections";
	if (m->options->replay)
		return "it is led by a recording: there is nothing to lead";
	if (is_apart(v))
		return "its rules have connections apart (@apart), so it cannot lead";
	if (is_closed(v) || is_closed(&m->version[m->leader]))
		return "the server is not dumpable (prctl), and only root may hand on what it has";
	if (version_elsewhere(&m->version[m->leader]))
		return "the server has processes in another pid namespace";
	return NULL;
}

const char *successor_barred(const struct monitor *m, const struct version *v)
{
	return barred(m, v, version_closed);
}

/* What costs no call. */
static bool could_lead(const struct monitor *m, const struct version *v)
{
	return v->index != m->leader && v->state == VERSION_FOLLOWS && !v->crash[0] &&
	       m->conduct->following >> v->index & 1 && !held_crash(m, v) && !rewind_is_on(v);
}

static bool may_lead(const struct monitor *m, const struct version *v)
{
	return could_lead(m, v) && version_alive(v) && !barred(m, v, version_closed_lately);
}

/*
 * The one that is least behind; NULL when there is none.  One that differs may do so
 * from a leader's last words: it is asked after the others, and the last is one that is at
 * its own, in a handler or in a sanitizer's report.
 */
struct version *successor(struct monitor *m)
{
	struct version *best = NULL;
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];
		uint64_t lag;

		if (!may_lead(m, v))
			continue;
		streams_lag(m, i, &lag);
		if (held_any(m, v, REQ_VERDICT))
			lag |= DIFFERS_LAG;
		if (follower_reports(v) || version_faults(v))
			lag |= DYING_LAG;
		if (lag >= least)
			continue;
		MUST(v->index != m->leader);
		least = lag;
		best = v;
	}
	return best;
}

bool successor_besides(const struct monitor *m, const struct version *to)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (&m->version[i] != to && may_lead(m, &m->version[i]))
			return true;
	return false;
}

struct version *successor_found(struct monitor *m, struct move *mv)
{
	struct version *v = mv->found;

	mv->found = NULL;
	return v && could_lead(m, v) && !held_any(m, v, REQ_VERDICT) ? v : successor(m);
}

static bool lane_has_twin(const struct monitor *m, const struct version *from,
			  const struct version *to, uint32_t i)
{
	const struct lane *l = lane_at(m, from->index, i);
	const struct cursor *c = cursor_at(m, to->index, i);

	return c->life == l->life && c->pid > 0 && c->owner > 0 && !thread_over(c->pid, c->owner);
}

static bool process_has_twin(const struct monitor *m, const struct version *from,
			     const struct version *to, pid_t pid)
{
	LANES_EACH(m, from->index, i)
		if (lane_at(m, from->index, i)->pid == pid && lane_has_twin(m, from, to, i))
			return true;
	return false;
}

pid_t twinless(const struct monitor *m, const struct version *from, const struct version *to)
{
	LANES_EACH(m, from->index, i) {
		const struct lane *l = lane_at(m, from->index, i);

		if (l->state == LANE_OPEN && l->pid > 0 && l->owner > 0 &&
		    !thread_over(l->pid, l->owner) && !process_has_twin(m, from, to, l->pid))
			return l->pid;
	}
	return 0;
}
