/*
 * How followers keep pace: how old the oldest event is that one has not read, and since
 * when one has not read anything though there is something to read.
 *
 * At each look (four times a second) the cells that the leader has published in all are
 * noted with the time.  What a follower has read is that less its lag; the time when the
 * leader stood there is how far behind it is.  So the figure is as fine as the looks are,
 * and it costs the leader and its followers nothing.
 */
#include <stddef.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/pace.h"
#include "engine/outside/follow/still.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/streams.h"

#define LOOKS		512	/* two minutes of them */
#define PAUSE_MS	1000	/* shorter than this is no standstill */

struct mark {
	uint64_t ms, written;	/* cells */
};

static struct pace {
	uint32_t leader;
	uint64_t written;	/* by this leader, all lanes, since we look */
	struct mark mark[LOOKS];
	unsigned marks;		/* ever; the last LOOKS are there */
	struct { uint64_t read, moved_ms; } of[VERSIONS];
	struct { uint32_t life; uint64_t head; } lane[LANES_ALL];	/* of the realms */
} pace;

static void pace_begin(const struct monitor *m)
{
	uint64_t now = now_ms();

	MUST(m->realms <= REALMS && m->leader < VERSIONS);

	memset(&pace, 0, offsetof(struct pace, lane));
	memset(pace.lane, 0, m->realms * LANES * sizeof(pace.lane[0]));
	pace.leader = m->leader;
	for (unsigned i = 0; i < VERSIONS; i++)
		pace.of[i].moved_ms = now;
}

/* A lane that has been given out again begins at 0. */
static void written_add(const struct monitor *m)
{
	LANES_EACH(m, m->leader, i) {
		const struct lane *l = lane_at(m, m->leader, i);
		/* The head of this life, or of one that is newer. */
		uint32_t life = CONSUME(lane_life, &l->life);
		uint64_t head = CONSUME(lane_head, &l->head);
		uint64_t was = pace.lane[i].life == life ? pace.lane[i].head : 0;

		pace.written += head > was ? head - was : 0;
		MUST(i < LANES_ALL);
		pace.lane[i].life = life;
		pace.lane[i].head = head;
	}
}

void pace_look(struct monitor *m)
{
	uint64_t now = now_ms();

	if (pace.leader != m->leader || !pace.marks)
		pace_begin(m);
	written_add(m);
	pace.mark[pace.marks++ % LOOKS] = (struct mark){ now, pace.written };
	for (unsigned i = 0; i < m->versions; i++) {
		uint64_t lag, read;

		if (!streams_lag(m, i, &lag))
			continue;
		read = lag < pace.written ? pace.written - lag : 0;
		if (!lag || read != pace.of[i].read)
			pace.of[i].moved_ms = now;
		pace.of[i].read = read;
	}
}

/*
 * Of the looks that are kept the first by which more was written than has been read by now: what
 * had not been read at the last look is as old as the next one, and may be a moment's.
 */
uint64_t pace_behind_ms(const struct monitor *m, const struct version *v)
{
	unsigned first = pace.marks > LOOKS ? pace.marks - LOOKS : 0;
	uint64_t lag;

	MUST(v->index < VERSIONS);

	if (!streams_lag(m, v->index, &lag) || !lag || pace.leader != m->leader)
		return 0;
	written_add(m);
	for (unsigned i = first; i < pace.marks; i++)
		if (pace.mark[i % LOOKS].written + lag > pace.written)
			return now_ms() - pace.mark[i % LOOKS].ms;
	return 0;
}

/* All of it (it is stopped, or computes), or a thread that sleeps (still.c). */
uint64_t pace_still_ms(struct monitor *m, struct version *v)
{
	uint64_t lag, still = now_ms() - pace.of[v->index].moved_ms, asleep;
	pid_t tid;

	if (!streams_lag(m, v->index, &lag) || !lag || pace.leader != m->leader || !pace.marks)
		return 0;
	asleep = still_look(m, v, &tid);
	still = asleep > still ? asleep : still;
	return still < PAUSE_MS ? 0 : still;
}
