/*
 * Findings of a session: from what a follower's sanitizer writes to a report.
 *
 * The runtime's writes are told before they are made (REQ_REPORTED), by the thread
 * that they are about, so nobody has to look for files or for who wrote them, and
 * where the words go on to is the user's affair.  They are collected in a draft, which
 * is done when the thread takes its next event, or the process ends; where there is no
 * event, when the thread has made a call and been quiet for a while (what a runtime
 * looks at, to name lines, may go as a query of the program).  The request is read when
 * the draft begins: other threads go on taking inputs.
 *
 * A finding that is equal to an earlier one of the same follower is counted.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/report/finding.h"
#include "engine/outside/report/findings.h"
#include "engine/outside/report/report.h"
#include "engine/outside/report/reports.h"

#define DRAFTS_MAX	16
/*
 * Limit (reports): findings of a session that are told apart. Beyond: further ones are
 * counted only.
 */
#define SEEN_MAX	256
/*
 * Limit (reports): bytes of a sanitizer's report. Beyond: it is cut.
 */
#define TEXT_MAX	(256u << 10)
#define DRAFT_LOOK_MS	50
#define QUIET_MS	5000	/* a symbolizer may have to be started */
#define STUCK_MS	60000	/* without a word: nobody waits for the rest of it */
#define RUNTIME_MS	2000	/* so long after its first program it has one */
#define COUNT_MS	1000	/* counts are written down so often */

struct draft {
	struct version *v;	/* NULL: the row is free */
	uint32_t slot;
	pid_t pid, tid;
	uint64_t taken, calls;	/* cells of its lane, and calls, when it began */
	uint64_t quiet_ms;	/* since then */
	struct finding_request request;
	char *text;		/* TEXT_MAX bytes; NULL: no memory */
	size_t len;
};

struct seen {
	const struct version *v;
	uint64_t key;
	unsigned number;	/* of its report; 0: it has none */
	uint64_t count, written;
};

struct findings {
	struct draft draft[DRAFTS_MAX];
	struct seen seen[SEEN_MAX];
	unsigned seens;
	uint64_t write_ms;	/* next */
};

/* --- one finding ---------------------------------------------------------------------- */

static struct seen *seen_find(struct findings *f, const struct version *v, uint64_t key)
{
	for (unsigned i = 0; i < f->seens; i++)
		if (f->seen[i].v == v && f->seen[i].key == key)
			return &f->seen[i];
	return NULL;
}

static unsigned finding_tell(const struct draft *d, json_t *finding)
{
	static const struct finding_request none = { .fd = -1 };
	const struct finding_request *request = finding_is_leak(finding) ? &none : &d->request;
	const struct follower_options *o = d->v->options;
	char path[REPORT_PATH];
	unsigned number;

	json_object_set_new(finding, "request", finding_request_json(request));
	json_object_set_new(finding, "count", json_integer(1));
	number = report_found(d->v, d->slot, finding, request, path, sizeof(path));
	if (o && o->on_finding)
		hook_run(d->v, o->on_finding, path);
	return number;
}

static void finding_count(struct findings *f, const struct draft *d, json_t *finding)
{
	uint64_t key = finding_key(finding);
	struct seen *s = seen_find(f, d->v, key);

	MUST(f->seens <= SEEN_MAX && d->v->findings <= d->v->findings_all);
	d->v->findings_all++;
	if (!s && f->seens < SEEN_MAX) {
		s = &f->seen[f->seens++];
		*s = (struct seen){ .v = d->v, .key = key, .written = 1 };
		d->v->findings++;
		s->number = finding_tell(d, finding);
	}
	if (s)
		s->count++;
}

/* --- drafts --------------------------------------------------------------------------- */

static struct draft *draft_find(struct findings *f, const struct version *v, pid_t tid)
{
	for (unsigned i = 0; i < DRAFTS_MAX; i++)
		if (f->draft[i].v == v && f->draft[i].tid == tid)
			return &f->draft[i];
	return NULL;
}

/* Its place in the lane does not say: a chunk's end and a seam move that, too. */
static uint64_t taken_of(const struct version *v, uint32_t slot)
{
	MUST(slot < AREA_THREADS);
	return v->area->slot[slot].taken;
}

static struct draft *draft_begin(struct findings *f, struct version *v,
				 const struct request *r)
{
	struct draft *d = draft_find(f, NULL, 0);

	if (!d)
		return NULL;
	MUST(!d->v && !d->text && r->tid > 0);
	*d = (struct draft){ .v = v, .slot = r->slot, .pid = r->pid, .tid = r->tid,
			     .taken = taken_of(v, r->slot), .text = malloc(TEXT_MAX),
			     .calls = v->area->slot[r->slot].calls, .quiet_ms = now_ms() };
	finding_request_read(v->area, r->pid, r->tid, &d->request);
	return d;
}

/* What a draft has found; a runtime looks for leaks when its process ends, of anything. */
enum found { FOUND_NOTHING, FOUND_LEAKS, FOUND_MORE };

/* What it says; `why` gets the last finding's summary, or what else was said. */
static enum found draft_end(struct findings *f, struct draft *d, char *why, size_t size)
{
	enum found found = FOUND_NOTHING;
	json_t *all, *finding;
	size_t i;

	MUST(d->v && d->len < TEXT_MAX);
	if (d->text)
		d->text[d->len] = 0;
	all = finding_read(d->text ? d->text : "");
	snprintf(why, size, "%.*s", d->text ? (int)strcspn(d->text, "\n") : 0, d->text);
	json_array_foreach(all, i, finding) {
		finding_count(f, d, finding);
		finding_summary(finding, why, size);
		if (found != FOUND_MORE)
			found = finding_is_leak(finding) ? FOUND_LEAKS : FOUND_MORE;
	}
	json_decref(all);
	free(d->request.bytes);
	free(d->text);
	*d = (struct draft){ 0 };
	return found;
}

/* The runtime ends the process. */
bool findings_end(struct version *v, pid_t tid)
{
	struct findings *f = v->monitor->findings;
	struct draft *d = f ? draft_find(f, v, tid) : NULL;
	char why[WHY_MAX - 32];
	uint32_t lane;
	enum found found;

	if (!d)
		return false;
	lane = v->area->slot[d->slot].lane - 1;
	found = draft_end(f, d, why, sizeof(why));
	if (v->index == v->monitor->leader)
		return found == FOUND_MORE;
	follower_reported(v, lane_is(v->monitor, lane) ? lane : 0,
			  found ? VERDICT_FOUND : VERDICT_CRASHED, why);
	return true;
}

static struct findings *findings_of(struct monitor *m)
{
	if (!m->findings)
		m->findings = calloc(1, sizeof(*m->findings));
	return m->findings;
}

void findings_add(struct version *v, uint32_t slot, json_t *finding,
		  const struct finding_request *request)
{
	const struct draft d = { .v = v, .slot = slot, .request = *request };

	MUST(finding && slot < AREA_THREADS);
	if (findings_of(v->monitor))
		finding_count(v->monitor->findings, &d, finding);
}

int64_t reported_serve(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	struct draft *d;
	long n;

	if (!findings_of(m))
		return 0;
	if (!r->args[0])
		return findings_end(v, r->tid) ? sanitizer_ends(v, r) : 0;
	d = draft_find(m->findings, v, r->tid);
	d = d ? d : draft_begin(m->findings, v, r);
	if (d && d->text && r->args[1] < TEXT_MAX - d->len) {
		n = memory_peek(r->tid, r->args[0], d->text + d->len, r->args[1]);
		d->len += n > 0 ? (size_t)n : 0;
		d->quiet_ms = now_ms();
	}
	monitor_wake_after(m, DRAFT_LOOK_MS);
	return 0;
}

/* --- the look after them -------------------------------------------------------------- */

/* The thread has gone on, as to a crash that it asks about, or is gone. */
static bool draft_is_done(const struct draft *d)
{
	const struct slot *s = &d->v->area->slot[d->slot];
	char task[64];

	snprintf(task, sizeof(task), "/proc/%d/task/%d", d->pid, d->tid);
	return (pid_t)s->owner != d->tid || taken_of(d->v, d->slot) != d->taken ||
	       held_is(d->v->monitor, d->v, d->slot) ||
	       (s->calls != d->calls && now_ms() > d->quiet_ms + QUIET_MS) ||
	       now_ms() > d->quiet_ms + STUCK_MS ||
	       access(task, F_OK) < 0;
}

bool findings_busy(const struct version *v)
{
	const struct findings *f = v->monitor->findings;

	for (unsigned i = 0; f && i < DRAFTS_MAX; i++)
		if (f->draft[i].v == v)
			return true;
	return false;
}

static void counts_write(struct monitor *m)
{
	struct findings *f = m->findings;

	for (unsigned i = 0; i < f->seens; i++) {
		struct seen *s = &f->seen[i];

		if (s->number && s->count != s->written)
			report_count(m->session.name, s->number, s->count);
		s->written = s->count;
	}
	f->write_ms = now_ms() + COUNT_MS;
}

/* Whoever asks for findings has given a sanitizer's build, or thinks so. */
void findings_runtime_look(struct version *v)
{
	/* One that led, and follows now, has no options. */
	if (!v->options || !v->options->on_finding || v->state != VERSION_FOLLOWS ||
	    v->runtime || v->runtime_missed || now_ms() < v->follows_ms + RUNTIME_MS)
		return;
	v->runtime_missed = true;
	say_error("build it with -fsanitize=address, say, and do not strip it",
		  "%s/%s: no sanitizer is in it, so nothing will be found: %s",
		  v->monitor->session.name, v->name, v->path);
}

bool findings_look(struct monitor *m)
{
	struct findings *f = m->findings;
	char why[WHY_MAX];
	bool any = false;

	for (unsigned i = 0; f && i < DRAFTS_MAX; i++) {
		struct draft *d = &f->draft[i];

		if (d->v && draft_is_done(d))
			draft_end(f, d, why, sizeof(why));
		any |= d->v != NULL;
	}
	if (any)
		monitor_wake_after(m, DRAFT_LOOK_MS);
	if (f && now_ms() >= f->write_ms)
		counts_write(m);
	return any;
}

void findings_close(struct monitor *m)
{
	char why[WHY_MAX];

	if (!m->findings)
		return;
	for (unsigned i = 0; i < DRAFTS_MAX; i++)
		if (m->findings->draft[i].v)
			draft_end(m->findings, &m->findings->draft[i], why, sizeof(why));
	counts_write(m);
}
