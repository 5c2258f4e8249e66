/*
 * Divergence reports: SESSIONFOLDER/report-N.json.  What stands here so far is
 * the least that a report must say; windows, bytes and stacks are to come.
 */
#include <signal.h>
#include <string.h>

#include "engine/abi/table.h"
#include "engine/outside/monitor.h"
#include "engine/outside/say.h"

static const char *const verdict_names[VERDICTS] = {
	[VERDICT_MATCH] = "match", [VERDICT_RULE] = "match by rule",
	[VERDICT_TOLERATED] = "tolerated", [VERDICT_DIVERGED] = "diverged",
	[VERDICT_CRASHED] = "crashed", [VERDICT_LAGGING] = "lagging",
	[VERDICT_UNSUPPORTED] = "unsupported", [VERDICT_BROKEN] = "broken",
};

const char *verdict_name(uint64_t verdict)
{
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

static const char *const difference_names[] = {
	[DIFFERS_CALL] = "call", [DIFFERS_VALUE] = "value", [DIFFERS_LENGTH] = "length",
	[DIFFERS_BYTES] = "bytes", [DIFFERS_END] = "end", [DIFFERS_EXTRA] = "extra",
};
#define DIFFERENCES (sizeof(difference_names) / sizeof(difference_names[0]))

static const char *call_name(uint32_t nr)
{
	const struct call_desc *d = call_find((long)nr);

	return d ? d->name : "unknown";
}

/* The last row of a thread's window; it is the program's, and may be anything. */
static struct window_row last_row(const struct slot *s)
{
	uint64_t calls = s->calls;

	return calls ? s->window[(calls - 1) % WINDOW] : (struct window_row){ 0 };
}

static json_t *report_json(struct version *v, const struct slot *s, enum verdict verdict,
			   const struct request *r)
{
	struct window_row row = last_row(s);
	uint64_t what = r->args[1];

	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:I, s:s, s:s, s:I, s:I}", "session",
			 v->monitor->session.name, "follower", v->name, "verdict",
			 verdict_name(verdict), "pid", r->pid, "thread", r->tid, "differs",
			 what < DIFFERENCES ? difference_names[what] : "unknown", "where",
			 (json_int_t)r->args[2], "call", call_name(row.call), "leader_call",
			 row.event.kind ? call_name(row.event.call) : "none", "place",
			 (json_int_t)s->place, "calls", (json_int_t)s->calls);
}

static void report_say(const struct version *v, const struct slot *s, enum verdict verdict,
		       const struct request *r)
{
	struct window_row row = last_row(s);

	say_error(NULL, "%s/%s: %s: %s, leader %s, thread %d", v->monitor->session.name, v->name,
		  verdict_name(verdict), call_name(row.call),
		  row.event.kind ? call_name(row.event.call) : "none", r->tid);
}

void report_write(struct version *v, uint32_t slot, enum verdict verdict,
		  const struct request *r, char *path, size_t size)
{
	const struct slot *s = &v->area->slot[slot];
	struct monitor *m = v->monitor;
	json_t *j = report_json(v, s, verdict, r);

	snprintf(path, size, "%s/report-%u.json", m->session.folder, ++m->reports);
	if (!j || json_dump_file(j, path, JSON_INDENT(1)) < 0)
		path[0] = 0;
	json_decref(j);
	report_say(v, s, verdict, r);
}
