/*
 * --on-divergence retry: in the place of a follower that a verdict has ended comes a twin of
 * the leader, under its name and with what was asked of it; later each time (again.c), and in
 * a row no more often than was said.  What a program that differs from itself has come to
 * differ in is gone by that: the twin has the leader's memory.
 *
 * The row is used again, so what is to be known of the one before is kept beside it.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/late/again.h"
#include "engine/outside/late/retry.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/print/text_json.h"

static bool is_wanted(const struct version *v)
{
	return v->options && v->options->policy == POLICY_RETRY;
}

void retry_ended(struct version *v)
{
	struct retry *r = &v->retry;
	unsigned most, first;

	MUST(!version_lives(v));
	if (!is_wanted(v))
		return;
	most = v->options->retry_times;
	first = v->options->retry_ms ? v->options->retry_ms : AGAIN_MS;
	snprintf(r->why, sizeof(r->why), "%s", v->why);
	r->when_ms = again_when(&r->ends, v->follows_ms, first);
	if (!most || r->ends <= most) {
		monitor_wake_after(v->monitor, (unsigned)(r->when_ms - now_ms()));
		return;
	}
	r->when_ms = 0;
	say_error("mve follow makes a twin, too",
		  "%s/%s: not replaced any more: it was %u time%s, and lost again",
		  v->monitor->session.name, v->name, most, most == 1 ? "" : "s");
}

static void retry_refused(struct version *v, const char *why, bool soon)
{
	struct retry *r = &v->retry;

	if (again_refused(&r->tries, soon, &r->when_ms))
		say_error("it is tried again now and then",
			  "%s/%s: not replaced: %s", v->monitor->session.name, v->name, why);
}

static void retry_make(struct monitor *m, struct version *v)
{
	struct follower_options like = *v->options;
	struct retry was = v->retry;
	char name[sizeof(v->name)], why[WHY_MAX];
	uint64_t stood_us = 0;
	bool passes = false;

	MUST(v->index != m->leader && !version_lives(v));
	strcpy(name, v->name);
	like.name = name;
	if (!twin_begin(m, &like, &stood_us, why, sizeof(why), &passes)) {
		retry_refused(v, why, passes && !stood_us);
		return;
	}
	/* Its name was the row's: it has come into that. */
	v->retry = was;
	v->retry.when_ms = v->retry.tries = 0;
	v->retry.times++;
}

void retry_look(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions && !m->finishing && !m->stopping; i++) {
		struct version *v = &m->version[i];
		uint64_t now;

		if (!v->retry.when_ms)
			continue;
		twin_want(m);
		if (now_ms() >= v->retry.when_ms)
			retry_make(m, v);
		now = now_ms();
		if (v->retry.when_ms)
			monitor_wake_after(m, v->retry.when_ms > now ?
					      (unsigned)(v->retry.when_ms - now) : 0);
	}
}

json_t *retry_json(const struct version *v)
{
	if (!is_wanted(v))
		return NULL;
	return json_pack("{s:I, s:i, s:b, s:o}", "times", (json_int_t)v->retry.times,
			 "in_a_row", (int)v->retry.ends, "comes", v->retry.when_ms != 0,
			 "why", text_json(v->retry.why));
}
