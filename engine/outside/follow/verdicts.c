/*
 * What followers report, and crashes: requests that are answered only after it
 * is clear what they mean.
 *
 * A leader that is about to crash may have done nonsense before, which its
 * followers see first.  So a verdict waits a moment; if the leader is found
 * crashing meanwhile, it is void, and the follower goes on.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/report/findings.h"
#include "engine/outside/report/report.h"
#include "engine/outside/report/reports.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/rules/rules_at_work.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"

#define HANDLER_LOOK_MS	50
#define HANDLER_MS	60000	/* so long it may be in its handler meanwhile */
#define RETRIES		64
#define HOOK_MOST	"60"	/* seconds that it may take, with what it starts */
#define CRASH_MS	6000	/* the longest that a crashing thread is kept for nothing */

/* --- requests that wait ------------------------------------------------------------- */

static bool held_same(const struct held *h, const struct version *v, const struct request *r)
{
	return h->version == v && h->request.slot == r->slot && h->request.serial == r->serial &&
	       h->request.tid == r->tid;
}

/* One that was held before has no more time than it was given then. */
static bool hold_on(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	uint64_t now = now_ms();

	for (unsigned i = 0; m->held_again && i < m->held_high; i++) {
		struct held *h = &m->held[i];

		if (!h->again || !held_same(h, v, r))
			continue;
		h->again = false;
		monitor_wake_after(m, h->until_ms > now ? (unsigned)(h->until_ms - now) : 0);
		return true;
	}
	return false;
}

bool hold(struct version *v, const struct request *r, unsigned ms)
{
	struct monitor *m = v->monitor;

	/* asker_find has bounded it. */
	MUST(r->slot < AREA_THREADS && m->held_high <= HELD_MAX);
	if (hold_on(v, r))
		return true;
	for (unsigned i = 0; i < HELD_MAX; i++) {
		if (m->held[i].version)
			continue;
		m->held[i] = (struct held){ .version = v, .since_ms = now_ms(),
					    .until_ms = now_ms() + ms, .request = *r };
		given_begin(&m->held[i].leader, leading(m), ms * 1000ull);
		m->held_high = i < m->held_high ? m->held_high : i + 1;
		monitor_wake_after(m, ms);
		return true;
	}
	return false;
}

/* The thread is gone, and its slot another's. */
static bool held_gone(const struct held *h)
{
	const struct request *r = &h->request;

	MUST(h->version && r->slot < AREA_THREADS);
	uint32_t owner = h->version->area->slot[r->slot].owner;

	return owner && (pid_t)owner != r->tid && !thread_state(r->pid, r->tid);
}

bool held_is(const struct monitor *m, const struct version *v, uint32_t slot)
{
	for (unsigned i = 0; i < m->held_high; i++)
		if (m->held[i].version == v && m->held[i].request.slot == slot &&
		    !m->held[i].again && !held_gone(&m->held[i]))
			return true;
	return false;
}

static void held_reply(struct held *h, int64_t reply)
{
	const struct held was = *h;

	MUST(was.version);
	*h = (struct held){ 0 };
	asker_answer_late(was.version, &was.request, reply);
}

bool held_take(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;

	for (unsigned i = 0; i < m->held_high; i++)
		if (held_same(&m->held[i], v, r)) {
			m->held[i] = (struct held){ 0 };
			return asker_waits(v, r);
		}
	return false;
}

/* Where nothing comes of it: a crash has its way, and code stays as it was mapped. */
static int64_t held_default(const struct held *h)
{
	const struct request *r = &h->request;

	if (r->kind == REQ_SITE_HOT)
		return -EAGAIN;
	if (r->kind == REQ_EXEC)
		return EXEC_GO_UNHELD;
	return r->kind == REQ_MAPPED ? (int64_t)(r->args[2] | MAPPED_UNCLEAN) : 0;
}

void held_again(struct monitor *m, uint32_t kind)
{
	for (unsigned i = 0; i < m->held_high; i++)
		if (m->held[i].version && m->held[i].request.kind == kind)
			m->held_again = m->held[i].again = true;
}

void held_served(struct monitor *m)
{
	for (unsigned i = 0; m->held_again && i < m->held_high; i++)
		if (m->held[i].again)
			m->held[i] = (struct held){ 0 };
	m->held_again = false;
}

void held_void(struct monitor *m, uint32_t kind, int64_t reply)
{
	for (unsigned i = 0; i < m->held_high; i++)
		if (m->held[i].version && m->held[i].request.kind == kind &&
		    version_lives(m->held[i].version))
			held_reply(&m->held[i], reply);
}

/* Its process is about to die of it: the first of those that have crashed is what it died of. */
static void crash_keep(struct monitor *m, struct version *v)
{
	const struct held *first = NULL;

	for (unsigned i = 0; i < m->held_high; i++) {
		const struct held *h = &m->held[i];

		if (h->version == v && h->request.kind == REQ_CRASHED && !held_gone(h) &&
		    (!first || h->since_ms < first->since_ms))
			first = h;
	}
	if (first && v->index != m->leader)
		report_crash(v, &first->request);
}

bool held_leave(struct monitor *m, struct version *v, pid_t pid)
{
	bool any = false, follows = v->index != m->leader && version_lives(v);

	crash_keep(m, v);
	for (unsigned i = 0; i < m->held_high; i++) {
		struct held *h = &m->held[i];

		if (h->version != v || (follows && h->request.kind == REQ_VERDICT) ||
		    (pid && h->request.pid != pid))
			continue;
		/* An exit is not told to followers when another leads. */
		held_reply(h, h->request.kind == REQ_EXIT ? v->index != m->leader
							  : held_default(h));
		any = true;
	}
	return any;
}

bool held_any(const struct monitor *m, const struct version *v, uint32_t kind)
{
	for (unsigned i = 0; i < m->held_high; i++)
		if (m->held[i].version == v && (!kind || m->held[i].request.kind == kind))
			return true;
	return false;
}

const struct request *held_crashed(const struct monitor *m, pid_t pid)
{
	for (unsigned i = 0; i < m->held_high; i++)
		if (m->held[i].version && m->held[i].request.kind == REQ_CRASHED &&
		    m->held[i].request.pid == pid)
			return &m->held[i].request;
	return NULL;
}

/* A thread of it has crashed, and waits to hear what that means. */
bool held_crash(const struct monitor *m, const struct version *v)
{
	for (unsigned i = 0; i < m->held_high; i++)
		if (m->held[i].version == v && m->held[i].request.kind == REQ_VERDICT &&
		    m->held[i].request.args[0] == VERDICT_CRASHED && !held_gone(&m->held[i]))
			return true;
	return false;
}

void held_forget(struct monitor *m, const struct version *v)
{
	for (unsigned i = 0; i < m->held_high; i++)
		if (m->held[i].version == v)
			m->held[i] = (struct held){ 0 };
}

/* --- verdicts ------------------------------------------------------------------------- */

static _Noreturn void hook_child(const struct version *v, const char *command, const char *report)
{
	sigset_t none;

	setenv("MVE_SESSION", v->monitor->session.name, 1);
	setenv("MVE_FOLLOWER", v->name, 1);
	setenv("MVE_REPORT", report, 1);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	/* It may outlive the session, so another than we has to end it. */
	execlp("timeout", "timeout", "-s", "KILL", HOOK_MOST, "/bin/sh", "-c", command,
	       (char *)NULL);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(EXIT_NOT_FOUND);
}

/* It is collected with the other children. */
void hook_run(const struct version *v, const char *command, const char *report)
{
	if (fork() == 0)
		hook_child(v, command, report);
}

static enum policy policy_of(const struct version *v, enum verdict verdict)
{
	MUST(verdict < VERDICTS);
	/* What can be ignored is only that the two differ. */
	if (!v->options || (verdict != VERDICT_DIVERGED && v->options->policy != POLICY_ALARM))
		return POLICY_STOP;
	return v->options->policy;
}

static void verdict_stop(struct version *v, enum verdict verdict, const struct request *r)
{
	enum policy policy = policy_of(v, verdict);
	char path[REPORT_PATH], why[WHY_MAX] = "", fault[WHY_MAX], tried[64] = "";

	MUST(v->index != v->monitor->leader && version_lives(v));
	rules_word(&v->area->slot[r->slot], fault, sizeof(fault));
	report_write(v, verdict, r, path, sizeof(path));
	if (rewind_tried(v, r) > 1)
		snprintf(tried, sizeof(tried), ", tried %u times", rewind_tried(v, r));
	else if (rewind_has_lost(v))
		strcpy(tried, ", not tried again: the ring had no room for its image");
	if (policy == POLICY_ALARM)
		hook_run(v, v->options->alarm, path);
	if (policy == POLICY_PROMOTE &&
	    !takeover_promote(v->monitor, v, PROMOTE_DIFFERS, why, sizeof(why))) {
		v->verdicts[verdict]++;
		asker_answer(v, r, ANSWER_IGNORE);
		return;
	}
	if (verdict == VERDICT_CRASHED)
		follower_drop(v, verdict, "crashed: %s at 0x%lx%s", signal_word(r->args[1]),
			      r->args[2], tried);
	else if (verdict == VERDICT_FAULTY)
		follower_drop(v, verdict, "%s", fault);
	else
		follower_drop(v, verdict, "%s%s%s%s", verdict_name(verdict), tried,
			      why[0] ? ", and is not promoted: " : "", why);
}

/*
 * A follower that was given up meanwhile reads cells that are written anew: what it finds there,
 * or does with it, is nothing that its program has done.
 */
static enum verdict verdict_of(const struct version *v, const struct request *r)
{
	if (streams_dropped(v->monitor, v->monitor->leader) >> v->index & 1)
		return VERDICT_LAGGING;
	return r->args[0] < VERDICTS ? (enum verdict)r->args[0] : VERDICT_BROKEN;
}

/* The leader's thread has died at this place, too: a child that was to die, say. */
static bool twin_died(const struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	uint64_t lane = r->args[5];

	if (!lane_is(m, lane))
		return false;
	streams_sweep(m);
	return lane_at(m, m->leader, (uint32_t)lane)->state == LANE_CLOSED &&
	       !streams_lane_unread(m, v->index, m->leader, (uint32_t)lane);
}

/* It was killed by the same signal, behind what its handler did, which is compared. */
static bool twin_was_killed(const struct version *v, const struct request *r)
{
	const struct replay *replay = v->monitor->options->replay;

	return replay && replay_killed_by(replay, r->args[1]);
}

/* The time is over, and the leader has not crashed. */
static void verdict_act(struct version *v, const struct request *r)
{
	enum verdict verdict = verdict_of(v, r);

	if (verdict == VERDICT_CRASHED && (twin_died(v, r) || twin_was_killed(v, r)))
		asker_answer(v, r, ANSWER_IGNORE);
	else if (version_lives(v) && !rewind_try(v, r))
		verdict_stop(v, verdict, r);
}

/*
 * One that leads by now differs from what it has still to read.  It must not go on:
 * what clients were told is not what it knows.
 */
static int64_t successor_differs(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	char path[REPORT_PATH];

	MUST(v->index == m->leader);
	if (m->move.differs)
		return ANSWER_IGNORE;
	/* Asked before it could know that the rest are last words: it looks again. */
	if (r->args[0] != VERDICT_CRASHED && m->move.retries++ < RETRIES)
		return ANSWER_RETRY;
	v->verdicts[verdict_of(v, r)]++;
	report_write(v, verdict_of(v, r), r, path, sizeof(path));
	if (takeover_want(v, r->args[0] == VERDICT_CRASHED ? "crashed at the same place" :
			  "differs from the leader before it"))
		return hold(v, r, CRASH_MS) ? REPLY_LATER : ANSWER_STOP;
	/* Nobody is left to be better off: the process dies of it, as natively, and no other. */
	if (r->args[0] == VERDICT_CRASHED)
		return ANSWER_IGNORE;
	say_error(NULL, "%s: no version is left that can go on", m->session.name);
	return ANSWER_STOP;
}

/*
 * What it reads has been cut off by a crash, and what is left may be last words.  It has
 * perhaps asked before it could know: it looks again, a few times.
 */
static bool asks_early(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	uint64_t lane = r->args[5];
	uint32_t source;

	if (r->args[0] != VERDICT_DIVERGED || !lane_is(m, lane))
		return false;
	source = cursor_at(m, v->index, (uint32_t)lane)->source;
	return source < VERSIONS && m->conduct->ended & m->conduct->crashed & 1u << source &&
	       m->move.retried[v->index]++ < RETRIES;
}

int64_t verdict_serve(struct version *v, const struct request *r)
{
	enum verdict verdict = verdict_of(v, r);

	if (v->index == v->monitor->leader)
		return successor_differs(v, r);
	if (!version_lives(v))
		return ANSWER_STOP;
	if (policy_of(v, verdict) == POLICY_IGNORE) {
		v->verdicts[verdict]++;
		return ANSWER_IGNORE;
	}
	if (asks_early(v, r))
		return ANSWER_RETRY;
	if (!rewind_is_again(v, r) && hold(v, r, v->monitor->options->verdict_ms)) {
		rewind_held(v);
		return REPLY_LATER;
	}
	verdict_act(v, r);
	return REPLY_LATER;
}

/* --- a leader's end ------------------------------------------------------------------- */

/* A follower's crash: it dies of it, and is dropped in a moment. */
static int64_t follower_crashed(struct version *v, const struct request *r)
{
	char path[REPORT_PATH];

	MUST(v->index != v->monitor->leader);

	if (findings_end(v, r->tid))
		return 0;
	if (!v->crash[0] && version_lives(v)) {
		snprintf(v->crash, sizeof(v->crash), "crashed: %s at 0x%lx",
			 signal_word(r->args[0]), r->args[1]);
		v->crash_verdict = VERDICT_CRASHED;
		report_write(v, VERDICT_CRASHED, r, path, sizeof(path));
		v->judge_ms = now_ms() + v->monitor->options->verdict_ms;
		monitor_wake_after(v->monitor, v->monitor->options->verdict_ms);
	}
	return 0;
}

/* The leader is about to end: it waits for a successor, or goes on to its end. */
static int64_t leader_ends(struct version *v, const struct request *r, const char *cause)
{
	MUST(v == leading(v->monitor));
	if (takeover_want(v, cause))
		return hold(v, r, CRASH_MS) ? REPLY_LATER : 0;
	takeover_missed(v, cause);
	return 0;
}

int64_t verdict_leader_ends(struct version *v, const struct request *r, const char *cause)
{
	const struct monitor *m = v->monitor;

	MUST(m->conduct);

	if (v->index != m->leader || m->options->failover == FAILOVER_OFF)
		return 0;
	return leader_ends(v, r, cause);
}

int64_t sanitizer_ends(struct version *v, const struct request *r)
{
	return verdict_leader_ends(v, r, "ended by its sanitizer");
}

int64_t crashed_serve(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	char cause[64];

	/* Others of it did so before, or it is replaced: it keeps what is yet to be taken. */
	if (v->state == VERSION_LEAVES)
		return hold(v, r, CRASH_MS) ? REPLY_LATER : 0;
	if (v->index != m->leader)
		return v->parked ? 0 : follower_crashed(v, r);
	if (m->options->failover == FAILOVER_OFF)
		return 0;
	if (!takeover_any(m) && followers_any(m))
		ahead_begin(r);
	snprintf(cause, sizeof(cause), "crashed: %s at 0x%lx",
		 signal_word(r->args[0]), r->args[1]);
	return leader_ends(v, r, cause);
}

/* Its end is the version's: how a child ends is for its parent to see. */
static bool is_head(const struct version *v, const struct request *r)
{
	return r->pid == version_head(v);
}

int64_t meant_serve(struct version *v, const struct request *r)
{
	pid_t from = (pid_t)r->args[0];

	return from != r->pid && !is_head(v, r) && version_owns(v, from, from);
}

int64_t exit_serve(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	char cause[64];

	if (v->index != m->leader || m->options->failover != FAILOVER_ERROR || !r->args[0] ||
	    !is_head(v, r))
		return 0;
	snprintf(cause, sizeof(cause), "exited with status %d", (int)r->args[0] & 0xff);
	return leader_ends(v, r, cause);
}

/* On a busy machine it may not have had the time to crash, too, yet. */
static bool leader_had_time(struct monitor *m, struct held *h)
{
	return h->leader.v != leading(m) || given_over(&h->leader);
}

/* It is in a handler that it may die of; what a recorded one died of stands at its end. */
static bool leader_may_die(const struct monitor *m, const struct request *r)
{
	const struct replay *replay = m->options->replay;

	return version_faults(&m->version[m->leader]) ||
	       (replay && r->args[0] == VERDICT_CRASHED && !replay->fed->read);
}

/* Answers what has waited long enough. */
void held_look(struct monitor *m)
{
	uint64_t now = now_ms(), next = 0;

	for (unsigned i = 0; i < m->held_high; i++) {
		struct held h = m->held[i];

		if (!h.version)
			continue;
		if (h.until_ms > now) {
			next = !next || h.until_ms < next ? h.until_ms : next;
			continue;
		}
		if (h.request.kind != REQ_VERDICT) {
			if (takeover_keeps(m, h.version))
				m->held[i].until_ms = now + CRASH_MS;
			else
				held_reply(&m->held[i], held_default(&h));
			continue;
		}
		if (follower_reports(h.version))
			continue;
		if (leader_may_die(m, &h.request) && now < h.since_ms + HANDLER_MS) {
			m->held[i].until_ms = now + m->options->verdict_ms;
			monitor_wake_after(m, HANDLER_LOOK_MS);
			continue;
		}
		if (!leader_had_time(m, &m->held[i])) {
			monitor_wake_after(m, GIVEN_LOOK_US / 1000 + 1);
			continue;
		}
		m->held[i] = (struct held){ 0 };
		if (!held_gone(&h))
			verdict_act(h.version, &h.request);
	}
	if (next)
		monitor_wake_after(m, (unsigned)(next - now));
}
