/*
 * What the server tells from its start on, for followers that come late and begin where it
 * began: mve follow NAME --from-start.
 *
 * Nothing is written down for that.  A row that no version has (ROW_START) is a follower that
 * never reads, so the ring gives nothing back; what it has no memory for is spilled.  A late
 * follower is one that is far behind, and all else (its lag, a takeover, a report) is as ever.
 * No lane has a second life while that is so, so it ends with --log-max or with LANES
 * threads, as a follower's end that is in the way, and the leader waits for it as for one.
 */
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/late/kept.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"

#define US	(1u << ROW_START)

void kept_begin(struct monitor *m)
{
	if (!m->options->from_start)
		return;
	MUST(!m->options->sampling.stateless && m->conduct->sections == VERSIONS);
	m->conduct->keeps |= US;
	m->conduct->following |= US;
}

void kept_end(struct monitor *m)
{
	if (m->conduct->following & m->conduct->keeps)
		streams_follow(m, ROW_START, false);
}

const char *kept_refused(const struct monitor *m)
{
	if (!m->options->from_start)
		return "it was started without --from-start: what it told at first is not kept";
	if (m->leader || !(m->conduct->following & US))
		return "the version that was started first does not lead any more";
	if (streams_dropped(m, m->leader) & US)
		return "what it told at first is not kept any more: it was more than --log-max, or "
		       "the disk, or a lane for each of its threads";
	return NULL;
}

void kept_follow(struct monitor *m, uint32_t version)
{
	struct section *s = streams_part(m, version), *leader = streams_part(m, m->leader);
	struct streams own = { m->conduct, version };

	MUST(version != m->leader && version < ROW_START);

	__atomic_fetch_and(&leader->strayed, ~(1u << version), __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < LANES; i++) {
		BOTH_BY(lane_readers, fetch_or, &leader->lane[i].readers, 1u << version);
		s->cursor[i] = (struct cursor){ .source = m->leader };
	}
	/* The first life of each lane: no other was begun while it is kept. */
	cursor_begin(&own, 0, 1, m->leader);
	/* Its cursors are at the beginning: it is told again. */
	BOTH_BY(section_dropped, fetch_and, &leader->dropped, ~(1u << version));
	streams_follow(m, version, true);
}
