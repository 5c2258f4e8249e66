/*
 * mve itself has failed in a version: a MUST of the inside, or a fault in its code
 * (inside/crash/failed.c).  A follower is dropped with a report; a leader is replaced, as
 * one that crashes; one that nobody can replace goes on, and nobody follows it any more.
 */
#include <stdio.h>

#include "engine/core/must.h"
#include "engine/outside/follow/failed.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/report/reports.h"
#include "engine/outside/start/image.h"

#define WORDS	200

/* What failed, from what its own process says of it. */
static void failed_words(const struct request *r, char *words, size_t size)
{
	char place[WORDS - 40];

	inside_place(r->args[1], place, sizeof(place));
	if (!r->args[0] || r->args[0] == FAILED_ALONE)
		snprintf(words, size, "MUST: %s", place);
	else
		snprintf(words, size, "%s at 0x%lx, %s", signal_word(r->args[0]), r->args[2],
			 place);
}

static int64_t follower_failed(struct version *v, const struct request *r, const char *words)
{
	char path[REPORT_PATH];

	MUST(v->index != v->monitor->leader);

	if (!version_lives(v))
		return 0;
	report_failed(v, v, r, words, path, sizeof(path));
	if (v->options && v->options->policy == POLICY_ALARM)
		hook_run(v, v->options->alarm, path);
	follower_drop(v, VERDICT_FAILED, "mve failed in it: %s", words);
	return 0;
}

/* What it tells from here on may be wrong. */
static int64_t leader_alone(struct version *v)
{
	struct monitor *m = v->monitor;

	MUST(v == leading(m));

	for (unsigned i = 0; i < m->versions; i++)
		follower_drop(&m->version[i], VERDICT_FAILED,
			      "mve failed in the leader, which goes on alone");
	m->failed = true;
	return 0;
}

/* A version whose thread is told what the leader's did: its window is the leader's, too. */
static struct version *witness_of(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (i != m->leader && m->version[i].state == VERSION_FOLLOWS)
			return &m->version[i];
	return NULL;
}

static int64_t leader_failed(struct version *v, const struct request *r, const char *words)
{
	struct monitor *m = v->monitor;
	struct version *witness = m->conduct ? witness_of(m) : NULL;
	char path[REPORT_PATH];

	v->verdicts[VERDICT_FAILED]++;
	if (witness)
		report_failed(v, witness, r, words, path, sizeof(path));
	else if (version_may_say(v))
		say_error("the server goes on; please tell whoever maintains mve",
			  "%s/%s: mve failed: %s", m->session.name, v->name, words);
	return witness ? verdict_leader_ends(v, r, "is left by mve, which failed in it") : 0;
}

int64_t failed_serve(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	char words[WORDS];

	if (v->state == VERSION_LEAVES)
		return 0;
	if (r->args[0] == FAILED_ALONE)
		return m->conduct && v->index == m->leader ? leader_alone(v) : 0;
	failed_words(r, words, sizeof(words));
	if (m->conduct && v->index != m->leader)
		return follower_failed(v, r, words);
	return leader_failed(v, r, words);
}
