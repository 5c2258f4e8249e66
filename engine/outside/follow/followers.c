/*
 * The life of followers: their start, their end, and the look after them.
 *
 * Nobody waits for a follower, and whatever becomes of one is a line for the
 * user and no more.  A follower may end as its leader ends, be dropped (by the
 * user, by a verdict, because it is a ring behind), or die; its processes are
 * killed and its place in the streams is given up in every case.
 */
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/late/join.h"
#include "engine/outside/follow/pace.h"
#include "engine/outside/foam/record_late.h"
#include "engine/outside/record/goes_on.h"
#include "engine/outside/late/past.h"
#include "engine/outside/late/retry.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/follow/still.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/log/rest.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/report/findings.h"
#include "engine/outside/report/reports.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/rules/rules_at_work.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/start/start.h"
#include "engine/outside/takeover/takeover.h"

#define JUDGE_MS	200	/* the leader may be about to end in the same way */
#define REPORTED_MS	3000	/* and may still be writing its own report */
#define FINISH_US	3000000	/* so long without progress the rest of the stream may be read */
#define FINISH_MOST_US	10000000 /* and so long in all, whatever the clock says: it reads on */
#define END_LOOKS	1000	/* of a millisecond, for what was killed to be gone */
#define FINDING_MS	13000	/* and what a sanitizer says at the end may take so long */
#define FINISH_LOOK_MS	5
#define IDLE_MS		300	/* one that has read everything ends by itself, or never */

static bool follows(const struct monitor *m, const struct version *v)
{
	return v->index != m->leader && version_lives(v) && !v->asleep;
}

bool followers_any(const struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (follows(m, &m->version[i]))
			return true;
	return false;
}

int followers_start(struct monitor *m)
{
	for (unsigned i = 1; i < m->versions; i++) {
		int result = version_unused(&m->version[i]) ? 0 : version_start(&m->version[i]);

		if (result)
			follower_drop(&m->version[i], VERDICT_UNSUPPORTED, "cannot start: %s",
				      strerror(-result));
	}
	return 0;
}

/* --- the end of one ---------------------------------------------------------------- */

/* No reader any more; its processes end. */
static void follower_close(struct version *v)
{
	struct monitor *m = v->monitor;

	MUST(v->index != m->leader);
	v->state = VERSION_ENDED;
	v->judge_ms = 0;
	if (m->options->replay)
		replay_closes(m);
	rewind_end(v);
	streams_follow(m, v->index, false);
	held_forget(m, v);
	version_end(v);
}

void follower_drop(struct version *v, enum verdict verdict, const char *why, ...)
{
	va_list ap;

	MUST(verdict < VERDICTS);
	if (!version_lives(v) || v->index == v->monitor->leader)
		return;
	va_start(ap, why);
	vsnprintf(v->why, sizeof(v->why), why, ap);
	va_end(ap);
	if (verdict != VERDICT_MATCH)
		v->verdicts[verdict]++;
	follower_close(v);
	say_error(NULL, "%s/%s: dropped: %s", v->monitor->session.name, v->name, v->why);
	if (verdict != VERDICT_MATCH) {
		past_lost(v);
		join_ended(v);
		retry_ended(v);
	}
}

/* It said nothing of its end, so a report is written for it. */
static void follower_lose(struct version *v, enum verdict verdict, const char *fmt, ...)
{
	char why[WHY_MAX];
	va_list ap;

	MUST(v->index != v->monitor->leader);

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (!v->crash_kept)
		report_lost(v, verdict, why);
	follower_drop(v, verdict, "%s", why);
}

/* Its first process is gone; whether that was right shows in a moment. */
void follower_ended(struct version *v)
{
	int error;

	v->gone = true;
	if (!version_lives(v) || v->parked || v->asleep)
		return;
	error = v->state == VERSION_STARTING ? version_start_error(v) : 0;
	if (error) {
		follower_drop(v, VERDICT_UNSUPPORTED, "cannot start: %s: %s", v->path,
			      strerror(-error));
		return;
	}
	if (!v->judge_ms)
		v->judge_ms = now_ms() + JUDGE_MS;
	monitor_wake_after(v->monitor, JUDGE_MS);
}

void follower_reported(struct version *v, uint32_t lane, enum verdict verdict, const char *why)
{
	MUST(verdict < VERDICTS && why);
	if (v->crash[0] || !version_lives(v))
		return;
	snprintf(v->crash, sizeof(v->crash), "ended by its sanitizer: %s", why);
	v->crash_verdict = verdict;
	v->reported = true;
	v->end_lane = lane;
	v->judge_ms = now_ms() + REPORTED_MS;
	monitor_wake_after(v->monitor, JUDGE_MS);
}

/* It ended as the leader did, or does: the process, for a thread's end is another matter. */
static bool end_is_twin(struct monitor *m, const struct version *v)
{
	if (m->options->replay && replay_first_over(m))
		return true;
	if (v->over)
		return !version_alive(leading(m));
	/* The server's first process has ended, whichever version led then and leads now. */
	if (m->background)
		return true;
	return leading(m)->gone || streams_process_over(m, v->end_lane) ||
	       streams_process_ends(m, v->end_lane);
}

/*
 * Its sanitizer is at a report, or has ended it, which is to be judged: what else is said
 * of it meanwhile is that delay's.
 */
bool follower_reports(const struct version *v)
{
	return findings_busy(v) || (v->reported && v->judge_ms);
}

/* A leader whose sanitizer writes, too, tells nothing meanwhile; one that goes on does. */
static bool judge_is_due(struct monitor *m, const struct version *v)
{
	uint64_t now = now_ms();
	bool soon;

	/* It has ended as its leader has: there is nothing to wait for. */
	if (!v->crash[0] && end_is_twin(m, v))
		return true;
	soon = v->reported && streams_lane_unread(m, v->index, m->leader, v->end_lane);

	return v->judge_ms <= now + (soon ? REPORTED_MS - JUDGE_MS : 0);
}

static void judge(struct monitor *m, struct version *v)
{
	MUST(v->index != m->leader && version_lives(v));
	v->judge_ms = 0;
	/* One look is of a moment, and its processes may be many. */
	if (v->over && !v->crash[0] && version_alive(v)) {
		v->over = false;
		return;
	}
	if (v->crash[0] && !(v->reported && end_is_twin(m, v)))
		follower_drop(v, v->crash_verdict, "%s", v->crash);
	else if (end_is_twin(m, v))
		followers_look(m);
	else if (v->reaped && WIFSIGNALED(v->status))
		follower_lose(v, VERDICT_CRASHED, "killed by %s",
			      signal_word((uint64_t)WTERMSIG(v->status)));
	else if (v->reaped)
		follower_lose(v, VERDICT_CRASHED, "exited with status %d while the leader goes on",
			      WEXITSTATUS(v->status));
	else
		follower_lose(v, VERDICT_CRASHED, "ended while the leader goes on");
}

void followers_judge(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (v->judge_ms && follows(m, v) && judge_is_due(m, v))
			judge(m, v);
		else if (v->judge_ms)
			monitor_wake_after(m, JUDGE_MS);
	}
}

/* --- the look after them -------------------------------------------------------------- */

/* Nothing is left of it: as of its leader, or it is judged in a moment. */
static void follower_over(struct version *v)
{
	MUST(v->index != v->monitor->leader && !v->judge_ms);
	if (v->over || !version_alive(leading(v->monitor))) {
		strcpy(v->why, "ended as the leader did");
		follower_close(v);
		return;
	}
	v->over = true;
	v->judge_ms = now_ms() + JUDGE_MS;
	monitor_wake_after(v->monitor, JUDGE_MS);
}

/* One that a debugger has stopped does not sleep. */
static void follower_still(struct monitor *m, struct version *v)
{
	pid_t tid = 0;
	uint64_t ms = still_look(m, v, &tid);

	if (m->options->replay && rest_look(m, v))
		return;
	if (m->options->still_ms && ms >= m->options->still_ms)
		follower_lose(v, VERDICT_LAGGING, "does not move: thread %d has slept for %lu ms "
			      "in front of what the leader has told", tid, ms);
}

static void follower_look(struct monitor *m, struct version *v)
{
	uint32_t bit = 1u << v->index;

	findings_runtime_look(v);
	/* A copy of the monitor is not their parent: it hears of no end. */
	if (m->background && !v->gone && process_began(v->server) != v->began)
		follower_ended(v);
	if (streams_strayed(m, m->leader) & bit)
		follower_drop(v, VERDICT_UNSUPPORTED,
			      "a connection went to a thread that has passed no --mark since");
	else if (streams_dropped(m, m->leader) & bit && !follower_reports(v))
		follower_lose(v, VERDICT_LAGGING, "a whole ring behind");
	else if (v->gone && !v->judge_ms && !version_alive(v))
		follower_over(v);
	else
		follower_still(m, v);
}

/* Four times a second: cheap, for it is all that a quiet session costs. */
void followers_look(struct monitor *m)
{
	streams_sweep(m);
	pace_look(m);
	record_images_look(m);
	record_goes_on_look(m);
	for (unsigned i = 0; i < m->versions; i++) {
		if (!follows(m, &m->version[i]))
			continue;
		streams_end_twins(m, &m->version[i]);
		follower_look(m, &m->version[i]);
	}
	still_waits_look(m);
	rules_look(m);
	takeover_ready(m);
}

/* --- the end of all ------------------------------------------------------------------- */

static bool still_reads(const struct monitor *m, const struct version *v)
{
	return follows(m, v) && (!v->gone || version_alive(v));
}

/* It has read all that there is: what keeps it is that there is no end to read. */
static bool has_read_all(const struct monitor *m, const struct version *v)
{
	uint64_t cells;

	streams_lag(m, v->index, &cells);
	return cells <= rest_cells(m) && now_us() > v->finish.began_us + IDLE_MS * 1000;
}

/*
 * A sanitizer looks for leaks before it lets its process end, and reads nothing meanwhile;
 * nor does what computes before its last words.
 */
static bool may_go_on(const struct monitor *m, struct version *v)
{
	MUST(m->finishing);
	if (!follows(m, v) || given_over(&v->finish_all))
		return false;
	/* What it did is being judged: that will be said, or is tried again. */
	if (v->judge_ms || held_any(m, v, REQ_VERDICT) || rewind_is_on(v))
		return true;
	if (!still_reads(m, v) || has_read_all(m, v))
		return false;
	return !given_over(&v->finish) || v->runtime ||
	       thread_state(v->server, v->server) == 'R';
}

/* It has not read all that its leader has told. */
static bool is_behind(const struct monitor *m, const struct version *v)
{
	uint64_t cells = 0;

	streams_lag(m, v->index, &cells);
	return cells > rest_cells(m);
}

/* It is about to be killed: nobody shall believe that its last calls were compared. */
static void uncompared_say(const struct monitor *m, const struct version *v)
{
	if (is_behind(m, v))
		say_error("the leader has ended, and it did not come to its end in time",
			  "%s/%s: killed: what the leader did last is not compared",
			  m->session.name, v->name);
}

/* An answer, or a program's beginning, for which a child of ours may have no processor. */
static bool is_owed(const struct monitor *m, const struct version *v)
{
	return held_any(m, v, REQ_NONE) || exec_any(m);
}

/* Who has read on since the last look has his time again. */
static void finish_look(struct monitor *m, struct version *v)
{
	uint64_t was = v->finish_cells;
	bool begins = !v->finish.v;

	if (!follows(m, v))
		return;
	streams_lag(m, v->index, &v->finish_cells);
	if (!begins && is_owed(m, v)) {
		given_ours(&v->finish, v->finish.looked_us);
		given_ours(&v->finish_all, v->finish_all.looked_us);
	}
	if (!begins && v->finish_cells >= was)
		return;
	if (begins)
		given_begin_waited(&v->finish_all, v, FINISH_MOST_US);
	given_begin_ending(&v->finish, v, FINISH_US);
	m->finish_ms = now_ms();
}

/* Killed: whoever waits for the session's end finds no process of it. */
static void await_end(const struct version *v)
{
	siginfo_t info = { 0 };

	for (int i = 0; i < END_LOOKS && !info.si_pid; i++) {
		if (waitid(P_PID, (id_t)v->server, &info, WEXITED | WNOHANG | WNOWAIT | __WALL))
			return;
		usleep(1000);
	}
}

/*
 * The leading version has ended.  Its followers may read what is left and end
 * by themselves; those that do not are killed.
 */
bool followers_finish(struct monitor *m)
{
	bool any = false;

	if (!m->conduct)
		return true;
	if (!m->finishing)
		m->finish_ms = now_ms();
	m->finishing = true;
	for (unsigned i = 0; i < m->versions; i++) {
		finish_look(m, &m->version[i]);
		any |= may_go_on(m, &m->version[i]);
	}
	if (any || (findings_look(m) && now_ms() < m->finish_ms + FINDING_MS)) {
		monitor_wake_after(m, FINISH_LOOK_MS);
		return false;
	}
	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];
		/* Who is killed tells no end: a follower that has read all is as far as it came. */
		bool rest = m->stopping || (v->area && is_behind(m, v));

		if (still_reads(m, v) && !v->why[0] && !m->stopping)
			uncompared_say(m, v);
		if ((i != m->leader || m->stopping) && v->area && !v->asleep) {
			version_end(v);
			await_end(v);
		}
		if (follows(m, v))
			snprintf(v->why, sizeof(v->why), "%s",
				 still_reads(m, v) && rest ? "ended with the session" :
							     "ended as the leader did");
	}
	return true;
}
