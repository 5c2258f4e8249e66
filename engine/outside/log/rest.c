/*
 * A replay that has come to rest.
 *
 * Where a recording is cut, or ended before its session, what is missing of one thread is what
 * others wait for: the event before theirs, or the clone that made them.  The follower stands
 * then with something left to read, for ever.  What somebody has made up may have threads that
 * nobody makes, and stand in the same way.
 *
 * That nothing moves is seen, not guessed: no cursor has moved and no frame was fed in several
 * looks, all threads that read sleep, and the feeder, who might have something for them, has
 * looked meanwhile, too.  One that computes has a minute: it may wait for another's memory.
 */
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/log/feeder.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/log/rest.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/report/findings.h"

#define REST_LOOKS	8	/* of the monitor's, and of the feeder's, at least */
#define REST_MS		2000	/* asleep, where the recording has no more; */
#define REST_RUNS_MS	60000	/* where a thread computes; */
#define REST_ODD_MS	(2 * STILL_MS)	/* where there is more, or nothing is missing: a verdict
					   about the program comes first */

/* Since when what has been read and fed is the same. */
struct rest {
	uint64_t sum, since_ms;
	uint32_t looks, fed_looks;
	bool slept;		/* in all of them */
};

static bool lane_sleeps(const struct cursor *c, const struct lane *l)
{
	int32_t pid = CONSUME(cursor_pid, &c->pid);
	char state;

	if (c->life != l->life || c->done == l->life || pid <= 0)
		return true;
	if (c->owner <= 0)	/* yet to come */
		return process_over(pid);
	state = thread_state(pid, c->owner);
	return state != 'R' && state != 'D' && state != 't' && state != 'T';
}

/* Anything that is read or fed makes it another. */
static uint64_t lanes_sum(struct monitor *m, const struct version *v, bool *sleep)
{
	uint64_t sum = m->options->replay->fed->frames;

	LANES_EACH(m, m->leader, i) {
		const struct cursor *c = cursor_at(m, v->index, i);

		sum = sum * 31 + CONSUME(cursor_at, &c->at);
		sum = sum * 31 + c->life + c->done;
		*sleep &= lane_sleeps(c, lane_at(m, m->leader, i));
	}
	return sum;
}

static void moved(struct rest *rest, const struct fed *fed, uint64_t sum)
{
	*rest = (struct rest){ .sum = sum, .since_ms = now_ms(), .fed_looks = fed->looks,
			       .slept = true };
}

static bool is_due(const struct rest *rest, const struct replay *r)
{
	uint64_t ms = now_ms() - rest->since_ms;

	if (rest->looks < REST_LOOKS || r->fed->looks - rest->fed_looks < REST_LOOKS)
		return false;
	if (!r->fed->read || !replay_missing(r))
		return rest->slept && ms >= REST_ODD_MS;
	return ms >= (rest->slept ? REST_MS : REST_RUNS_MS);
}

/* It stands where it was to stand, is looked at, or judged; or more may come. */
static bool may_stand(const struct monitor *m, const struct version *v)
{
	const struct replay *r = m->options->replay;
	const struct fed *fed = r->fed;

	if (!fed->read && (r->tail || fed->until.asked))
		return true;
	return v->state != VERSION_FOLLOWS || v->judge_ms || follower_reports(v) ||
	       held_any(m, v, REQ_VERDICT) ||
	       stand_is_watched(&fed->until, streams_part(m, v->index));
}

bool rest_look(struct monitor *m, const struct version *v)
{
	static struct rest rest;
	struct replay *r = m->options->replay;
	bool sleep = true;
	uint64_t sum;

	MUST(v->index != m->leader && r->fed);
	if (m->finishing)
		return false;
	sum = lanes_sum(m, v, &sleep);
	if (sum != rest.sum || may_stand(m, v))
		moved(&rest, r->fed, sum);
	rest.looks++;
	rest.slept &= sleep;
	if (is_due(&rest, r))
		__atomic_store_n(&r->fed->rests, 1, __ATOMIC_RELAXED);
	return r->fed->read && replay_missing(r);
}

uint64_t rest_cells(const struct monitor *m)
{
	const struct replay *r = m->options->replay;

	if (!r || !r->fed)
		return 0;
	return r->fed->rests ? UINT64_MAX : r->fed->open;
}
