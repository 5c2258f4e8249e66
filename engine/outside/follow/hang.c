/*
 * --hang: a leader's thread that computes for too long without a call.  Looked
 * for from outside: the kernel says how much processor time each thread has had
 * in its own code, the lane and the counts say whether it has made calls.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/hang.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/takeover/takeover.h"

#define LOOKS		4	/* in the time after which it is a hang */
#define TICK_MS		10	/* of the times that /proc shows */

/* What was seen of a thread. */
struct seen {
	pid_t tid;
	uint64_t done, calls, user;
	uint64_t since_ms;	/* it has computed without doing anything */
};

static struct seen seen[AREA_THREADS];
_Static_assert(AREA_THREADS == sizeof(((struct area *)0)->slot) / sizeof(struct slot),
	       "a row each");

/* Time in its own code, in ticks; 0 unless it runs. */
static uint64_t user_time(pid_t pid, pid_t tid)
{
	char name[64], text[512], *at;
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", pid, tid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	at = strrchr(text, ')');
	if (!at || at[2] != 'R')
		return 0;
	/* The 14th field; the third stands after the name. */
	for (int field = 2; field < 14 && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static uint64_t calls_of(const struct slot *s)
{
	uint64_t n = 0;

	for (int c = 0; c < SLOT_CALLS; c++)
		n += s->counts[TIER_PATCH][c] + s->counts[TIER_NET][c];
	return n;
}

/*
 * What the thread has done that somebody can see: what it told, and what it did about
 * connections that are not told.  A call that is its own affair, as mmap, is no progress.
 */
static uint64_t done_by(const struct monitor *m, const struct slot *s, uint64_t calls)
{
	uint32_t lane = s->lane - 1;

	MUST(s >= m->version[m->leader].area->slot);

	if (!lane_is(m, lane))
		return calls;
	return lane_at(m, m->leader, lane)->head + s->calls_kept;
}

/* For how long the thread has computed without doing anything. */
static uint64_t slot_look(struct monitor *m, const struct slot *s, struct seen *was, uint64_t now)
{
	struct seen is = { .tid = (pid_t)s->owner, .since_ms = now };

	if (!s->owner || s->asked == RS_ASKED || s->parked || s->unheld)
		return was->tid = 0;
	is.user = user_time(s->pid, is.tid);
	is.calls = calls_of(s);
	is.done = done_by(m, s, is.calls);
	/* It was in its own code since: one long call may take its time. */
	if (is.user && is.tid == was->tid && is.done == was->done &&
	    (is.user > was->user || is.calls != was->calls))
		is.since_ms = was->since_ms;
	*was = is;
	return now - is.since_ms;
}

void hang_look(struct monitor *m)
{
	static uint64_t next_ms;
	uint32_t hang_ms = m->options->hang_ms, step = hang_ms / LOOKS;
	struct version *v = leading(m);
	uint64_t now = now_ms();
	char cause[64];

	if (!hang_ms || takeover_any(m) || !followers_any(m))
		return;
	step = step > TICK_MS ? step : TICK_MS;
	monitor_wake_after(m, step);
	if (now < next_ms)
		return;
	next_ms = now + step - 1;
	for (uint32_t i = 0; i < version_slots(v); i++) {
		uint64_t ms = slot_look(m, &v->area->slot[i], &seen[i], now);

		if (ms < hang_ms)
			continue;
		snprintf(cause, sizeof(cause), "hangs: thread %u, %lu ms without a call",
			 v->area->slot[i].owner, ms);
		takeover_want(v, cause);
		seen[i].tid = 0;
		return;
	}
}
