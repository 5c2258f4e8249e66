/*
 * Twins: mve follow without a command.  The leader's threads come to stand as for a takeover.
 * Then each of its processes is asked for a copy of itself (twin_copy.c, inside/roles/twin.c):
 * while all stand the twin's cursors are put to where the lanes end, and it is followed from
 * there on.  The leader goes on as soon as the copies are made; what they do until they
 * follow is their own time.
 *
 * Whatever fails before that the leader goes on as if nothing had been asked, and the row is
 * free again.  What fails later is a follower that is dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/foam/foam_task.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/company.h"
#include "engine/outside/late/cost.h"
#include "engine/outside/late/past.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/copies.h"
#include "engine/outside/rewind/twin_copy.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

#define LOOK_MS		10
#define COMES_MS	5000	/* for it to follow, as long as it sleeps */
#define LOUD_MS		120000	/* so long is one that is wanted waited for: see twin_want */

/* --- may it be ------------------------------------------------------------------------- */

/* Of each process, and why one has no copy; NULL: nothing is against any. */
static const char *processes_barred(const struct version *v)
{
	pid_t last = 0;

	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];
		pid_t pid = s->pid;

		if (!s->owner || pid == last || process_over(pid))
			continue;
		if (s->unheld)
			return "a program that it has started is not held";
		if (process_closed(pid))
			return "the server, or a process of it, is not dumpable (prctl)";
		last = pid;
	}
	return NULL;
}

/* For good, as far as one can see; NULL: nothing is against it. */
static const char *barred(struct monitor *m)
{
	const struct version *v = leading(m);

	if (m->options->sampling.stateless)
		return "it was started with --stateless: give the program, behind --";
	if (m->failed)
		return "mve has failed in it, and what it tells may be wrong";
	if (!version_alive(v) || m->finishing)
		return "its server has ended";
	if (v->gone)
		return "its first process has ended";
	if (v->runtime)
		return "a sanitizer's runtime is in it";
	if (version_closed(v))
		return "the server is not dumpable (prctl)";
	if (version_elsewhere(v))
		return "it has processes in another pid namespace";
	return processes_barred(v);
}

/* What goes by itself. */
static const char *busy(struct monitor *m)
{
	if (takeover_any(m))
		return "a takeover is under way";
	if (exec_any(m))
		return "a program is on its way through an execve";
	if (version_faults(leading(m)))
		return "its server is in a handler of a deadly signal";
	return NULL;
}

/* --- one is wanted ------------------------------------------------------------------------- */

static const char *copy_why(int result)
{
	if (result == -EAGAIN)
		return twin_copy_why();
	if (result == -E2BIG)
		return "its processes are too many, or share too much memory (docs/limits.md)";
	if (result == -EBUSY)
		return "it has several processes, and one takes orphans (PR_SET_CHILD_SUBREAPER)";
	if (result == -EPERM)
		return "a process of it has changed its rights while it had several threads";
	return result == -ENOMEM ? "there is no memory for it" : strerror(-result);
}

/* Which processes are to be copied is known; NULL: they can be. */
static const char *crowd(struct monitor *m, bool *passes)
{
	int result = copies_begin(leading(m));

	if (!result && copies_confined(&leading(m)->rewind))
		return COPIES_CONFINED;
	*passes = result == -EAGAIN;
	if (result == -E2BIG)
		return COPIES_TOO_MANY;
	return result ? "a process of it has just begun" : NULL;
}

/* All that it may write: a fork is cheap, and what comes later must not end the server. */
static const char *too_much(struct monitor *m)
{
	static char text[WHY_MAX];
	const struct rewind *rw = &leading(m)->rewind;
	uint64_t cost = 0, room = cost_room(leading(m)->server);

	for (unsigned i = 0; i < rw->wanted_copies; i++)
		cost += cost_of(rw->wanted[i].of);
	if (cost <= room)
		return NULL;
	snprintf(text, sizeof(text), "it may come to cost %lu MiB of memory, and there are %lu",
		 cost >> 20, room >> 20);
	return text;
}

static struct version *row_for(struct monitor *m, const struct follower_options *like,
			       uint64_t *stood_us, const char **why, bool *passes)
{
	struct version *v;

	*why = barred(m);
	if (!*why)
		*why = company_want(m, stood_us, passes);
	if (*why)
		return NULL;
	v = row_find(m, like->name, why, passes);
	if (!v)
		return NULL;
	*passes = true;
	*why = busy(m);
	if (!*why && !old_stream_read(m, v, false))
		*why = "a follower still reads what another told in its place";
	if (!*why)
		*why = crowd(m, passes);
	if (!*why)
		*why = too_much(m);
	return *why ? NULL : v;
}

/* A row that is as new, as long as nobody has become a version, and the same one leads. */
static struct {
	struct version *v;
	const struct version *leader;
	uint32_t births;
} ready;

const char *twin_ready(struct monitor *m, const struct follower_options *like,
		       uint64_t *stood_us, bool *passes)
{
	const char *why;
	struct version *v = row_for(m, like, stood_us, &why, passes);
	int result = v ? row_renew(v) : 0;

	if (v && result) {
		*passes = result == -EAGAIN;
		why = copy_why(result);
	} else if (v) {
		twin_prepare(v, like);
		ready.v = v;
		ready.leader = leading(m);
		ready.births = m->conduct->births;
	}
	return why;
}

static bool is_ready(struct monitor *m)
{
	return ready.v && row_is_free(m, ready.v) && ready.leader == leading(m) &&
	       ready.births == m->conduct->births && !m->failed;
}

/* The server of an update stands by now: what could be asked before has been. */
static struct version *row_ready(struct monitor *m, const struct follower_options *like,
				 uint64_t *stood_us, const char **why, bool *passes)
{
	struct version *v;

	if (like->update && is_ready(m)) {
		*passes = true;
		*why = busy(m);
	} else {
		*why = twin_ready(m, like, stood_us, passes);
	}
	v = *why ? NULL : ready.v;
	ready.v = NULL;
	return v;
}

/*
 * A leader that nobody follows tells nothing, and knows little of its locks.  From here on it
 * does: which the first one that is asked for waits for, and is asked for again.
 */
void twin_want(struct monitor *m)
{
	struct version *leader = leading(m);

	__atomic_store_n(&leader->brief->loud, 1, __ATOMIC_RELAXED);
	leader->loud_ms = now_ms() + LOUD_MS;
}

/* Once the last has gone the leader may be quiet. */
static void loud_end(struct version *leader)
{
	leader->loud_ms = 0;
	__atomic_store_n(&leader->brief->loud, 0, __ATOMIC_RELAXED);
}

void twin_comes(struct version *v)
{
	v->state = VERSION_STARTING;
	v->comes_ms = now_ms();
	v->comes_slept = 0;
	monitor_wake_after(v->monitor, LOOK_MS);
}

void twin_has_come(struct version *v)
{
	v->comes_ms = 0;
	v->state = VERSION_FOLLOWS;
	v->follows_ms = now_ms();
	loud_end(leading(v->monitor));
	past_joined(v->monitor);
}

static void loud_look(struct version *v)
{
	uint64_t now = now_ms();

	if (!v->loud_ms)
		return;
	if (now < v->loud_ms) {
		monitor_wake_after(v->monitor, (unsigned)(v->loud_ms - now));
		return;
	}
	loud_end(v);
}

struct version *twin_begin(struct monitor *m, const struct follower_options *like,
			   uint64_t *stood_us, char *why, size_t size, bool *passes)
{
	const char *no;
	struct version *v = row_ready(m, like, stood_us, &no, passes);
	int result = 0;

	if (v) {
		if (like->update)
			v->brief->update = *like->update;
		twin_want(m);
		result = twin_copy(v, like, stood_us);
	}
	if (*stood_us)
		past_stood(m, PAUSE_twin, *stood_us);
	*passes |= result == -EAGAIN;
	if (v && result)
		no = copy_why(result);
	snprintf(why, size, "%s", no ? no : "");
	if (no)
		return NULL;
	for (unsigned i = 0; i < v->rewind.wanted_copies && m->cgroup >= 0; i++)
		cgroup_put(m->cgroup, v->name, v->rewind.wanted[i].of);
	say_log("twin", "%s/%s: pid %d, the leader stood for %lu us", m->session.name, v->name,
		v->server, *stood_us);
	monitor_wake_after(m, LOOK_MS);
	wakes_look(m);	/* where nobody followed nobody was looked after */
	return v;
}

/* Each of its processes is waited for by the others. */
static bool any_runs(const struct version *v)
{
	bool any = process_runs(v->server, AREA_THREADS);

	for (unsigned i = 0; i < v->rewind.wanted_copies; i++)
		any |= process_runs(v->rewind.wanted[i].of, AREA_THREADS);
	return any;
}

/*
 * For how long it has been seen asleep.  Where no processor was to be had, or the machine stood, we
 * did not look either: that counts as one look, however long it was.
 */
static uint32_t comes_sleeps(struct version *v)
{
	uint64_t now = now_ms(), since = now - v->comes_ms;

	v->comes_ms = now;
	v->comes_slept = any_runs(v) ? 0 :
		v->comes_slept + (uint32_t)(since < LOOK_MS ? since : LOOK_MS);
	return v->comes_slept;
}

void twin_look(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		loud_look(v);
		if (!v->comes_ms || v->state != VERSION_STARTING || foam_task_is_of(v))
			continue;
		if (comes_sleeps(v) < COMES_MS)
			monitor_wake_after(m, LOOK_MS);
		else if (v->asleep)
			foam_task_lost(v);
		else
			follower_drop(v, VERDICT_UNSUPPORTED, "its copy does not come to follow");
	}
}
