/*
 * Followers that come late: mve follow.  They are led through the leader's start by
 * the record of it (start_record.c), then added to those that the leader tells, and
 * each of their threads goes on in the leader's stream at its lane's next seam
 * (inside/sample/seam.c).  The leader waits for none of this.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/again.h"
#include "engine/outside/late/join.h"
#include "engine/outside/late/kept.h"
#include "engine/outside/late/past.h"
#include "engine/outside/late/retry.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/late/spares.h"
#include "engine/outside/late/start_record.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rules/rules_load.h"
#include "engine/outside/start/start.h"
#include "engine/outside/takeover/takeover.h"

#define READ_MS		60000	/* the start may take so long, under a sanitizer */
#define LOOK_MS		10
#define AGAIN_VAIN	5	/* times that one comes again and never follows */

/* Nobody is told by mistake, and nothing is held for whoever had the row. */
static void section_renew(struct monitor *m, uint32_t version)
{
	struct section *s = streams_part(m, version), *leader = streams_part(m, m->leader);
	struct streams own = { m->conduct, version };

	MUST(version != m->leader && version < ROW_START);

	__atomic_fetch_and(&leader->strayed, ~(1u << version), __ATOMIC_RELAXED);
	BOTH_BY(section_dropped, fetch_and, &leader->dropped, ~(1u << version));
	for (uint32_t i = 0; i < LANES; i++) {
		if (leader->lane[i].life)
			BOTH_BY(lane_readers, fetch_and, &leader->lane[i].readers,
				~(1u << version));
		s->cursor[i] = (struct cursor){ .source = ROW_START };
	}
	cursor_begin(&own, 0, streams_part(m, ROW_START)->lane[0].life, ROW_START);
}

/* --- its beginning ------------------------------------------------------------------ */

static bool is_followed(const struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (i != m->leader && version_lives(&m->version[i]))
			return true;
	return false;
}

/* Why none can join at a seam now, and whether that goes by itself; NULL: one can. */
static const char *refused(struct monitor *m, bool *passes)
{
	static char text[WHY_MAX + 32];

	if (!m->options->sampling.stateless)
		return "it was started without --stateless or --from-start";
	if (m->start.state == START_NONE)
		return "it was started without --mark: nothing says where a request begins";
	*passes = m->start.state == START_READS;
	if (*passes)
		return "its start is not over: no connection has come yet, or only just now";
	if (m->start.state == START_LOST) {
		snprintf(text, sizeof(text), "its start was not kept: %s", m->start.why);
		return text;
	}
	if (m->leader)
		return "the version that was started first does not lead any more";
	if (m->start.threads && is_followed(m))
		return "it has threads, and is followed: their locks have an order that began then "
		       "(mve drop ends a follower)";
	return NULL;
}

static const char *refused_ever(struct monitor *m, bool *passes)
{
	if (m->failed)
		return "mve has failed in it, and what it tells may be wrong";
	*passes = takeover_any(m);
	if (*passes)
		return "a takeover is under way";
	return version_alive(leading(m)) ? NULL : "its server has ended";
}

/* For the newcomer's sake they will not be told of some connections. */
static void others_part(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		m->version[i].partly |= i != m->leader;
}

/* From the start's record to a seam. */
static void part_follow(struct monitor *m, struct version *v)
{
	section_renew(m, v->index);
	others_part(m);
	v->partly = true;
	v->join = JOIN_READS;
	v->join_ms = now_ms() + READ_MS;
}

struct version *join_begin(struct monitor *m, const char *path, char **argv,
			   const struct follower_options *like, char *why, size_t size,
			   bool *passes)
{
	bool whole = like->from_start;
	const char *no = whole ? kept_refused(m) : refused(m, passes);
	struct version *v = NULL;
	int result;

	if (!no)
		no = refused_ever(m, passes);

	if (!no && (!path || path[0] != '/' || !argv[0]))
		no = "no program was given";
	if (!no)
		no = program_foreign(path, leading(m)->path);
	if (!no)
		v = row_find(m, like->name, &no, passes);
	if (no) {
		snprintf(why, size, "%s", no);
		return NULL;
	}
	result = row_renew(v);
	if (!result) {
		row_take(v, path, argv, like, "late");
		if (whole)
			kept_follow(m, v->index);
		else
			part_follow(m, v);
		result = version_start(v);
	}
	if (result) {
		snprintf(why, size, "cannot start: %s: %s", path, strerror(-result));
		if (v->argv == argv) {
			v->argv = NULL;
			follower_drop(v, VERDICT_UNSUPPORTED, "cannot start: %s",
				      strerror(-result));
		}
		return NULL;
	}
	monitor_wake_after(m, LOOK_MS);
	return v;
}

/* --- on its way ----------------------------------------------------------------------- */

/*
 * A thread that the leader's start saw end has taken all, and may still have to say so.  Until
 * then its cursor is not the one of who gets the lane next: that would be said of this one.
 * It runs; one that sleeps is not at its end, and may wait for what comes behind the start.
 */
static bool may_still_end(struct monitor *m, const struct version *v, uint32_t lane)
{
	const struct lane *l = lane_at(m, m->leader, lane);
	const struct cursor *c = cursor_at(m, v->index, lane);
	uint32_t life = streams_part(m, ROW_START)->lane[lane].life;

	return (CONSUME(lane_state, &l->state) != LANE_OPEN || l->life != life) &&
	       CONSUME(cursor_done, &c->done) != life && thread_runs(c->pid, c->owner);
}

static bool has_read_start(struct monitor *m, const struct version *v)
{
	const struct section *start = streams_part(m, ROW_START), *s = streams_part(m, v->index);

	for (uint32_t i = 0; i < section_lanes(start); i++)
		if (start->lane[i].life && (s->cursor[i].life != start->lane[i].life ||
					    may_still_end(m, v, i)))
			return false;
	return v->state == VERSION_FOLLOWS && !streams_unread(m, v->index, ROW_START);
}

static bool has_joined(struct monitor *m, const struct version *v)
{
	const struct section *start = streams_part(m, ROW_START), *s = streams_part(m, v->index);

	for (uint32_t i = 0; i < section_lanes(start); i++)
		if (s->cursor[i].life && s->cursor[i].source == m->leader)
			return true;
	return false;
}

static void version_look(struct monitor *m, struct version *v)
{
	MUST(v->join == JOIN_READS || v->join == JOIN_WAITS);
	if (v->join == JOIN_READS && has_read_start(m, v)) {
		v->join = JOIN_WAITS;
		/* Before it is followed, and by that release. */
		m->conduct->joins++;
		streams_follow(m, v->index, true);
	} else if (v->join == JOIN_READS && now_ms() > v->join_ms) {
		follower_drop(v, VERDICT_UNSUPPORTED, "does not come through the leader's start");
	} else if (v->join == JOIN_WAITS && has_joined(m, v)) {
		v->join = JOIN_DONE;
		past_joined(m);
		v->join_ms = now_ms();
		say_log("join", "%s/%s: follows", m->session.name, v->name);
	}
	if (version_lives(v) && v->join != JOIN_DONE)
		monitor_wake_after(m, LOOK_MS);
}

/* --- coming again --------------------------------------------------------------------- */

void join_ended(struct version *v)
{
	bool followed = v->join == JOIN_DONE || !v->join;

	if (!v->options || !v->options->again)	/* the first leader has none */
		return;
	v->again_ms = again_when(&v->ends, followed ? v->join_ms : 0, AGAIN_MS);
	if (!followed && v->ends > AGAIN_VAIN) {
		v->again_ms = 0;
		say_error("mve report shows where it differs, if it does",
			  "%s/%s: does not come again: it came %u times and never followed",
			  v->monitor->session.name, v->name, v->ends);
	}
}

/* What cannot be now may be later. */
static void version_again(struct monitor *m, struct version *v)
{
	struct follower_options like = *v->options;
	char **argv = row_words(v->argv), *path = strdup(v->path), why[WHY_MAX];
	char name[FOLLOWER_NAME_MAX + 1];
	bool passes;

	MUST(v->options && v->options->again && !version_unused(v));

	MUST(path);
	strcpy(name, v->name);
	like.name = name;
	v->again_ms = 0;
	if (!join_begin(m, path, argv, &like, why, sizeof(why), &passes)) {
		v->again_ms = now_ms() + again_latest_ms();
		say_log("join", "%s/%s: not again: %s", m->session.name, name, why);
		for (size_t i = 0; argv[i]; i++)
			free(argv[i]);
		free(argv);
	}
	free(path);
}

static void join_look(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (v->again_ms && v->again_ms <= now_ms() && row_is_free(m, v) && !m->finishing)
			version_again(m, v);
		if (v->join && v->join != JOIN_DONE && version_lives(v))
			version_look(m, v);
	}
}

void late_look(struct monitor *m)
{
	start_record_look(m);
	join_look(m);
	twin_look(m);
	spares_look(m);
	retry_look(m);
}
