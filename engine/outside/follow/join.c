/*
 * Followers that come late: mve follow.  They are led through the leader's start by
 * the record of it (start_record.c), then added to those that the leader tells, and
 * each of their threads goes on in the leader's stream at its lane's next seam
 * (inside/sample/seam.c).  The leader waits for none of this.
 *
 * Rows and areas for them are made with the session, since an area's robust futex
 * must not be taken after the leader's (versions_alive_hold).  The row of one that
 * has ended is used again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/join.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rules/rules_load.h"
#include "engine/outside/start/start.h"
#include "engine/outside/takeover/takeover.h"

#define READ_MS		60000	/* the start may take so long, under a sanitizer */
#define LOOK_MS		10
#define AGAIN_MS	500	/* before one comes again; twice as long each time */
#define AGAIN_MOST	7	/* times that it is twice as long */
#define STEADY_MS	60000	/* one that followed so long has no past */
#define AGAIN_VAIN	5	/* times that one comes again and never follows */

static const struct follower_options spare = { .name = "" };

bool version_spare(const struct version *v)
{
	return v->options == &spare;
}

int join_rows_make(struct monitor *m)
{
	int result = 0;

	MUST(m->versions <= ROW_START);	/* that row is the start's */

	while (!result && m->versions < ROW_START) {
		result = version_make(m, &spare);
		if (!result)
			m->version[m->versions - 1].state = VERSION_ENDED;
	}
	return result;
}

/* --- a row ------------------------------------------------------------------------ */

static bool is_free(const struct monitor *m, const struct version *v)
{
	return v->index != m->leader && v->state == VERSION_ENDED &&
	       (version_spare(v) || (v->gone && v->reaped));
}

/* One that nobody had, so that the others' ends can be seen; else the first that is free. */
static struct version *row_find(struct monitor *m)
{
	struct version *found = NULL;

	for (unsigned i = m->versions; i--;)
		if (is_free(m, &m->version[i]) &&
		    (!found || version_spare(&m->version[i]) || !version_spare(found)))
			found = &m->version[i];
	return found;
}

/* As it was before its first process; what the monitor has there stays. */
static int area_renew(struct version *v)
{
	off_t from = offsetof(struct area, site);
	struct area *a = v->area;

	MUST(v->state == VERSION_ENDED);	/* nobody has it mapped any more */

	if (fallocate(v->area_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
		      (off_t)sizeof(*a) - from) < 0)
		return -errno;
	a->slots_high = a->sites_lost = a->filters = v->images = 0;
	memset(a->births, 0, sizeof(a->births));
	memset(a->asking, 0, sizeof(a->asking));
	memset(a->refused, 0, sizeof(a->refused));
	a->signals_held = a->locks_unordered = 0;
	memset(a->wait, 0, sizeof(a->wait));
	memset(a->unsealed, 0, sizeof(a->unsealed));
	v->brief->strict = v->brief->maps = v->brief->rules = 0;
	return 0;
}

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

/* Why none can come now, and whether that goes by itself; NULL: one can. */
static const char *refused(struct monitor *m, bool *passes)
{
	static char text[WHY_MAX + 32];

	if (!m->options->sampling.stateless)
		return "it was started without --stateless, and cannot be followed late";
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
	if (m->failed)
		return "mve has failed in it, and what it tells may be wrong";
	*passes = takeover_any(m);
	if (*passes)
		return "a takeover is under way";
	if (!version_alive(leading(m)))
		return "its server has ended";
	if (m->start.threads && is_followed(m))
		return "it has threads, and is followed: their locks have an order that began then "
		       "(mve drop ends a follower)";
	return NULL;
}

static struct follower_options *options_new(const struct version *v,
					    const struct follower_options *like)
{
	static unsigned made;
	struct follower_options *o = calloc(1, sizeof(*o));
	char text[FOLLOWER_NAME_MAX + 1];

	MUST(o);
	*o = *like;
	if (!like->name)
		snprintf(text, sizeof(text), "late%u", ++made);
	o->argv = v->argv;
	if (like->rules_bank) {
		o->rules_bank = rules_copy(like->rules_bank);
		MUST(o->rules_bank);
	}
	o->name = strdup(like->name ? like->name : text);
	MUST(o->name);
	return o;
}

/* What row_take made for the one before. */
static void row_free(const struct version *was)
{
	if (!was->join)
		return;
	MUST(was->options && !version_spare(was));	/* made by options_new */
	for (char **word = was->argv; word && *word; word++)
		free(*word);
	free(was->argv);
	free(was->path);
	free((char *)was->options->name);
	free(was->options->rules_bank);
	free((struct follower_options *)was->options);
}

static void row_take(struct version *v, const char *path, char **argv,
		     const struct follower_options *like)
{
	struct version was = *v;
	struct follower_options *o;

	MUST(was.index != was.monitor->leader && was.state == VERSION_ENDED);

	*v = (struct version){ .monitor = was.monitor, .index = was.index, .area = was.area,
			       .brief = was.brief, .area_fd = was.area_fd,
			       .brief_fd = was.brief_fd, .key = was.key, .image = was.image,
			       .bell_thread = was.bell_thread,
			       .argv = argv, .tell = -1, .partly = true, .join = JOIN_READS,
			       .join_ms = now_ms() + READ_MS, .ends = was.ends };
	v->path = strdup(path);
	MUST(v->path);
	o = options_new(v, like);
	v->options = o;
	version_ask(v, o);
	snprintf(v->name, sizeof(v->name), "%s", o->name);
	if (was.tell >= 0)
		close(was.tell);
	row_free(&was);
}

static bool name_taken(struct monitor *m, const char *name)
{
	const struct version *v = name ? version_named(m, name) : NULL;

	return v && !is_free(m, v);
}

/* For the newcomer's sake they will not be told of some connections. */
static void others_part(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		m->version[i].partly |= i != m->leader;
}

struct version *join_begin(struct monitor *m, const char *path, char **argv,
			   const struct follower_options *like, char *why, size_t size,
			   bool *passes)
{
	const char *no = refused(m, passes), *name = like->name;
	struct version *v = no ? NULL : name && version_named(m, name) ? version_named(m, name)
								       : row_find(m);
	int result;

	if (!no && (!path || path[0] != '/' || !argv[0]))
		no = "no program was given";
	if (!no)
		no = program_foreign(path, leading(m)->path);
	if (!no && name && (!session_name_ok(name) || strlen(name) > FOLLOWER_NAME_MAX))
		no = "not a follower's name: up to 32 letters, digits and . _ -";
	if (!no && name_taken(m, name)) {
		*passes = version_named(m, name)->state == VERSION_ENDED;
		no = "the name is in use: by the leader, or by a follower that has not ended";
	}
	if (!no && !v)
		no = "all places are taken by followers that have not ended yet";
	if (no) {
		snprintf(why, size, "%s", no);
		return NULL;
	}
	result = area_renew(v);
	if (!result) {
		section_renew(m, v->index);
		others_part(m);
		row_take(v, path, argv, like);
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

static bool has_read_start(struct monitor *m, const struct version *v)
{
	const struct section *start = streams_part(m, ROW_START), *s = streams_part(m, v->index);

	for (uint32_t i = 0; i < section_lanes(start); i++)
		if (start->lane[i].life && s->cursor[i].life != start->lane[i].life)
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
	bool long_ago = followed && now_ms() > v->join_ms + STEADY_MS;
	unsigned ends = long_ago ? 0 : v->ends;

	if (!v->options || !v->options->again)	/* the first leader has none */
		return;
	v->ends = ends + 1;
	v->again_ms = now_ms() + ((uint64_t)AGAIN_MS << (ends < AGAIN_MOST ? ends : AGAIN_MOST));
	if (!followed && ends >= AGAIN_VAIN) {
		v->again_ms = 0;
		say_error("mve report shows where it differs, if it does",
			  "%s/%s: does not come again: it came %u times and never followed",
			  v->monitor->session.name, v->name, ends + 1);
	}
}

static char **words_copy(char *const *words)
{
	size_t n = 0;
	char **copy;

	while (words[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	MUST(copy);
	for (size_t i = 0; i < n; i++) {
		copy[i] = strdup(words[i]);
		MUST(copy[i]);
	}
	return copy;
}

/* What cannot be now may be later. */
static void version_again(struct monitor *m, struct version *v)
{
	struct follower_options like = *v->options;
	char **argv = words_copy(v->argv), *path = strdup(v->path), why[WHY_MAX];
	char name[FOLLOWER_NAME_MAX + 1];
	bool passes;

	MUST(v->options && v->options->again && !version_spare(v));

	MUST(path);
	strcpy(name, v->name);
	like.name = name;
	v->again_ms = 0;
	if (!join_begin(m, path, argv, &like, why, sizeof(why), &passes)) {
		v->again_ms = now_ms() + ((uint64_t)AGAIN_MS << AGAIN_MOST);
		say_log("join", "%s/%s: not again: %s", m->session.name, name, why);
		for (size_t i = 0; argv[i]; i++)
			free(argv[i]);
		free(argv);
	}
	free(path);
}

void join_look(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (v->again_ms && v->again_ms <= now_ms() && is_free(m, v) && !m->finishing)
			version_again(m, v);
		if (v->join && v->join != JOIN_DONE && version_lives(v))
			version_look(m, v);
	}
}
