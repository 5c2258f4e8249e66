/*
 * Reports from the monitor's side: what it knows of a verdict is gathered here,
 * and a line is said.  The verdict's thread stands still in its request while its
 * report is written, so its memory can be read.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/follow/itself.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/report/finding.h"
#include "engine/outside/report/report.h"
#include "engine/outside/report/reports.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/stages/stages.h"

#define BECOMING_MAX	128

static const char *const verdict_names[VERDICTS] = {
	[VERDICT_MATCH] = "match", [VERDICT_RULE] = "match by rule",
	[VERDICT_TOLERATED] = "tolerated", [VERDICT_DIVERGED] = "diverged",
	[VERDICT_CRASHED] = "crashed", [VERDICT_LAGGING] = "lagging",
	[VERDICT_UNSUPPORTED] = "unsupported", [VERDICT_BROKEN] = "broken",
	[VERDICT_FAULTY] = "a rule failed", [VERDICT_FOUND] = "found",
	[VERDICT_FAILED] = "mve failed",
};

const char *verdict_name(uint64_t verdict)
{
	MUST(verdict >= VERDICTS || verdict_names[verdict]);
	return verdict < VERDICTS ? verdict_names[verdict] : "unknown";
}

/* "SIGSEGV"; valid until the next call. */
const char *signal_word(uint64_t sig)
{
	static char word[24];
	const char *name = sig < NSIG ? sigabbrev_np((int)sig) : NULL;

	if (name)
		snprintf(word, sizeof(word), "SIG%s", name);
	else
		snprintf(word, sizeof(word), "signal %lu", sig);
	return word;
}

static const char *const policy_names[] = {
	[POLICY_STOP] = "stop", [POLICY_IGNORE] = "ignore", [POLICY_ALARM] = "alarm",
	[POLICY_PROMOTE] = "promote", [POLICY_RETRY] = "retry",
};
_Static_assert(sizeof(policy_names) / sizeof(policy_names[0]) == POLICY_RETRY + 1, "each policy");

static void side_fill(struct report_side *side, const struct version *v)
{
	size_t n = 0;

	side->name = v->name;
	side->pid = version_head(v);
	side->command[0] = 0;
	for (char **arg = v->argv; arg && *arg && n < sizeof(side->command); arg++)
		n += (size_t)snprintf(side->command + n, sizeof(side->command) - n, "%s%s",
				      n ? " " : "", *arg);
}

static long memory_of(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return memory_peek(*(pid_t *)ctx, addr, buf, len);
}

static void start_fill(struct stack_start *start, const struct slot *s, bool exact)
{
	*start = (struct stack_start){ .place = s->place, .stack = s->stack, .exact = exact };
	memcpy(start->saved, s->saved, sizeof(start->saved));
}

static void want_fill(struct report_want *w, struct version *v, const struct slot *s,
		      enum verdict verdict)
{
	struct monitor *m = v->monitor;
	uint32_t lane = s->lane - 1;

	MUST(verdict < VERDICTS && (!v->options || v->options->policy <= POLICY_RETRY));
	*w = (struct report_want){
		.session = m->session.name, .tid = (pid_t)s->owner, .slot = s,
		.streams = lane_is(m, lane) ? m->realm[lane / LANES].conduct : m->conduct,
		.version = v->index, .verdict = verdict,
		.strict = v->brief->strict,
		.policy = policy_names[v->options ? v->options->policy : POLICY_STOP],
	};
	side_fill(&w->leader, leading(m));
	side_fill(&w->follower, v);
	w->follower.pid = s->pid;
}

/* --- a verdict that the follower asks for ------------------------------------------- */

/* It is no finding: nobody is to look for it in a version. */
static void itself_say(const struct report_want *w)
{
	MUST(w->session && w->follower.name);
	if (w->itself)
		say_error("docs/followers.md has what can be done",
			  "%s/%s: no finding: the program differs from itself: %s", w->session,
			  w->follower.name, w->itself);
}

/* Writes it down, and says in a line what it is; path is "" if it could not be written. */
static unsigned report_finish(const struct report_want *w, char *path, size_t size)
{
	const struct finding_request *q = w->request;
	json_t *report = report_make(w);
	int result = report_keep(report, q ? q->bytes : NULL, q ? q->len : 0, path, size);
	unsigned number = (unsigned)json_integer_value(json_object_get(report, "number"));
	char hint[256];

	MUST(w->policy && w->session && w->slot);
	if (result)
		path[0] = 0;
	if (result)
		snprintf(hint, sizeof(hint), "no report could be written: %.200s",
			 folder_why(-result));
	else
		snprintf(hint, sizeof(hint), "mve report %s shows %s", w->session,
			 w->finding ? "it, and the request" :
			 w->led || w->becoming ? "its stack" : "both sides");
	say_error(hint, "%s/%s: %s: %s", w->session, w->follower.name, verdict_name(w->verdict),
		  report_summary(report));
	itself_say(w);
	json_decref(report);
	return result ? 0 : number;
}

void report_write(struct version *v, enum verdict verdict, const struct request *r, char *path,
		  size_t size)
{
	struct slot copy;
	pid_t pid = r->pid;
	struct print_mem mem = { memory_of, &pid };
	struct stack_start start;
	struct report_want w;

	MUST(r->slot < AREA_THREADS);	/* asker_find has bounded it */
	copy = v->area->slot[r->slot];
	want_fill(&w, v, &copy, verdict);
	w.what = r->args[1];
	w.where = r->args[2];
	w.tried = v->monitor->options->rewind ? rewind_tried(v, r) : 1;
	if ((verdict == VERDICT_DIVERGED || verdict == VERDICT_CRASHED) && itself_is(v))
		w.itself = itself_why(v, w.tried);
	start_fill(&start, &copy, verdict == VERDICT_CRASHED);
	w.follower.pid = r->pid;
	w.tid = r->tid;
	if (asker_waits(v, r)) {
		w.mem = &mem;
		w.stack = &start;
	}
	report_finish(&w, path, size);
}

/* The slot of the witness' thread in the lane; of none, it says nothing. */
static void twin_copy(struct slot *copy, const struct version *witness, uint64_t lane)
{
	for (uint32_t i = 0; i < version_slots(witness); i++) {
		*copy = witness->area->slot[i];
		if (copy->owner && copy->lane == lane + 1)
			return;
	}
	*copy = (struct slot){ 0 };
}

void report_failed(struct version *v, struct version *witness, const struct request *r,
		   const char *why, char *path, size_t size)
{
	struct report_want w;
	struct slot copy;

	twin_copy(&copy, witness, r->args[5]);
	want_fill(&w, v, &copy, VERDICT_FAILED);
	w.version = witness->index;
	w.why = why;
	w.follower.pid = r->pid;
	w.tid = r->tid;
	report_finish(&w, path, size);
}

/* --- a finding ------------------------------------------------------------------------ */

unsigned report_found(struct version *v, uint32_t slot, json_t *finding,
		      const struct finding_request *request, char *path, size_t size)
{
	struct slot copy;
	struct report_want w;

	MUST(slot < AREA_THREADS && finding && request);
	copy = v->area->slot[slot];
	want_fill(&w, v, &copy, VERDICT_FOUND);
	w.finding = finding;
	w.request = request;
	return report_finish(&w, path, size);
}

/* --- a leader that crashed, a twin that dies ----------------------------------------- */

/* What is known when it goes: its version's row may be another's when this is told. */
struct crash {
	struct monitor *monitor;
	struct report_want want;
	struct slot slot;
	char names[2][FOLLOWER_NAME_MAX + 1];
	char becoming[BECOMING_MAX];
};

/* Where its end is told by a word, the place is added. */
static void crash_place_say(const struct crash *c)
{
	struct version *v = version_named(c->monitor, c->want.follower.name);
	json_t *place = report_place(c->want.frames);
	const char *text = json_string_value(place);

	if (v && v->crash_kept) {
		stages_place(c->monitor, v->why, text);
		strncat(v->why, text, sizeof(v->why) - strlen(v->why) - 1);
	}
	json_decref(place);
}

static void crash_tell(void *of, json_t *frames)
{
	struct crash *c = of;
	char path[REPORT_PATH];

	c->want.frames = frames;
	crash_place_say(c);
	report_finish(&c->want, path, sizeof(path));
	free(c);
}

static struct crash *crash_make(struct version *v, const struct request *r)
{
	struct crash *c = calloc(1, sizeof(*c));

	MUST(r->slot < AREA_THREADS && v->index != v->monitor->leader);
	if (!c)
		return NULL;
	c->monitor = v->monitor;
	/* What it met when it followed has nothing to do with this. */
	c->slot = (struct slot){ .owner = (uint32_t)r->tid, .pid = r->pid };
	want_fill(&c->want, v, &c->slot, VERDICT_CRASHED);
	snprintf(c->names[0], sizeof(c->names[0]), "%s", c->want.leader.name);
	snprintf(c->names[1], sizeof(c->names[1]), "%s", c->want.follower.name);
	c->want.leader.name = c->names[0];
	c->want.follower.name = c->names[1];
	return c;
}

void report_crash(struct version *v, const struct request *r)
{
	struct stack_start start;
	struct crash *c;

	MUST(r->kind == REQ_CRASHED);
	if (v->crash_kept || !asker_waits(v, r))
		return;
	v->crash_kept = true;
	c = crash_make(v, r);
	if (!c)
		return;
	c->want.what = r->args[0];
	c->want.where = r->args[1];
	c->want.led = true;
	start_fill(&start, &v->area->slot[r->slot], true);
	stack_read_beside(r->pid, &start, crash_tell, c);
}

struct crash *report_dying(struct version *v, const struct request *r, const char *becoming)
{
	struct crash *c = crash_make(v, r);

	MUST(r->kind == REQ_UPDATE);
	if (!c)
		return NULL;
	v->crash_kept = true;
	snprintf(c->becoming, sizeof(c->becoming), "%s", becoming);
	c->want.becoming = c->becoming;
	c->want.what = r->args[1];
	c->want.where = r->args[2];
	return c;
}

void report_dead(struct crash *c, json_t *frames)
{
	char path[REPORT_PATH];

	c->want.frames = frames;
	report_finish(&c->want, path, sizeof(path));
	free(c);
}

/* --- one that it knows nothing of ----------------------------------------------------- */

/* How far behind a thread is, in cells. */
static uint64_t behind(const struct version *v, const struct slot *s)
{
	const struct monitor *m = v->monitor;
	uint32_t lane = s->lane - 1;
	const struct cursor *c;
	uint64_t head;

	if (!m->conduct || !s->lane || !lane_is(m, lane))
		return 0;
	c = cursor_at(m, v->index, lane);
	head = __atomic_load_n(&lane_at(m, m->leader, lane)->head, __ATOMIC_RELAXED);
	return c->source == m->leader && head > c->at ? head - c->at : 0;
}

/* The thread to tell of: the one that is behind most, or that made most calls. */
static uint32_t thread_choose(const struct version *v)
{
	uint32_t high = version_slots(v), best = 0;

	for (uint32_t i = 1; i < high; i++) {
		const struct slot *s = &v->area->slot[i], *b = &v->area->slot[best];
		uint64_t x = behind(v, s), y = behind(v, b);

		if (x > y || (x == y && s->calls > b->calls))
			best = i;
	}
	return best;
}

/* Where a thread that may run is; false when it is gone. */
static bool start_catch(struct version *v, const struct slot *s, struct stack_start *start)
{
	const struct image *im = &v->image[s->image % AREA_IMAGES];

	start_fill(start, s, false);
	return version_owns(v, s->pid, (pid_t)s->owner) &&
	       stack_catch((pid_t)s->owner, im->inside, im->inside_len, start);
}

bool report_catch(struct version *v, pid_t tid, struct stack_start *start)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->vtid == tid)
			return start_catch(v, s, start);
	}
	return false;
}

void report_lost(struct version *v, enum verdict verdict, const char *why)
{
	struct slot copy = v->area->slot[thread_choose(v)];
	struct stack_start start;
	struct report_want w;
	char path[REPORT_PATH];

	want_fill(&w, v, &copy, verdict);
	w.why = why;
	if (verdict == VERDICT_LAGGING)
		w.streams = NULL;	/* the leader has not kept its place */
	if (start_catch(v, &copy, &start))
		w.stack = &start;
	report_finish(&w, path, sizeof(path));
}
