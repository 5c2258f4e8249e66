/*
 * The rows of versions.  Those of a session's first versions are made with it, and so are unused
 * ones for those that come later, since an area's robust futex must not be taken after the
 * leader's (versions_alive_hold).  The row of one that has ended is used again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rules/rules_load.h"
#include "engine/outside/takeover/take.h"

static const struct follower_options unused = { .name = "" };

bool version_unused(const struct version *v)
{
	return v->options == &unused;
}

static int rows_fill(struct monitor *m, unsigned most)
{
	int result = 0;

	MUST(most <= ROW_START);

	while (!result && m->versions < most) {
		result = version_make(m, &unused);
		if (!result)
			m->version[m->versions - 1].state = VERSION_ENDED;
	}
	return result;
}

int rows_make(struct monitor *m)
{
	unsigned most = options_versions(m->options);

	return rows_fill(m, most < ROW_START ? most : ROW_START);
}

int rows_make_late(struct monitor *m)
{
	unsigned first = m->versions;
	int result = rows_fill(m, ROW_START);

	if (!result && m->versions > first)
		result = versions_alive_hold(m, first);
	for (unsigned i = first; i < m->versions && !result; i++)
		result = version_bell_start(&m->version[i]);
	return result;
}

/* Its first process is over.  A copy of the monitor is not its parent, and hears of no end. */
static bool first_is_over(const struct version *v)
{
	if (v->monitor->background)
		return process_began(v->server) != v->began;
	return v->gone && v->reaped;
}

bool row_is_free(const struct monitor *m, const struct version *v)
{
	return v->index != m->leader && v->state == VERSION_ENDED &&
	       !(m->logs && v->index == ROW_LOG) &&
	       (version_unused(v) || first_is_over(v));
}

/* One that nobody had, so that the others' ends can be seen; else the first that is free. */
static struct version *row_any(struct monitor *m)
{
	struct version *found = NULL;

	for (unsigned i = m->versions; i--;)
		if (row_is_free(m, &m->version[i]) &&
		    (!found || version_unused(&m->version[i]) || !version_unused(found)))
			found = &m->version[i];
	return found;
}

static const char *name_wrong(struct monitor *m, const char *name, bool *passes)
{
	const struct version *v = version_named(m, name);

	if (!session_name_ok(name) || strlen(name) > FOLLOWER_NAME_MAX)
		return "not a follower's name: up to 32 letters, digits and . _ -";
	if (!v || row_is_free(m, v))
		return NULL;
	*passes = v->state == VERSION_ENDED;
	return "the name is in use: by the leader, or by a follower that has not ended";
}

/* One that was dropped has processes that are still ending. */
static bool any_ends(const struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (i != m->leader && m->version[i].state == VERSION_ENDED)
			return true;
	return false;
}

struct version *row_find(struct monitor *m, const char *name, const char **why, bool *passes)
{
	struct version *v;

	*why = name ? name_wrong(m, name, passes) : NULL;
	if (*why)
		return NULL;
	v = name && version_named(m, name) ? version_named(m, name) : row_any(m);
	if (v)
		return v;
	*why = "all places are taken by followers that have not ended yet";
	*passes = any_ends(m);
	return NULL;
}

/* As it was before its first process; what the monitor has there stays. */
int row_renew(struct version *v)
{
	off_t from = offsetof(struct area, site);
	struct area *a = v->area;

	MUST(v->state == VERSION_ENDED);	/* nobody has it mapped any more */

	if (fallocate(v->area_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
		      (off_t)sizeof(*a) - from) < 0)
		return -errno;
	/* What the one before was killed at is nobody's any more.  The doorbell goes on. */
	memset(&a->slots_high, 0, offsetof(struct area, site) - offsetof(struct area, slots_high));
	v->images = 0;
	v->brief->strict = v->brief->maps = v->brief->rules = 0;
	v->brief->images = (struct images){ 0 };
	v->brief->loud = v->brief->leave = v->brief->sends = 0;
	v->brief->update = (struct update_words){ 0 };
	return 0;
}

static struct follower_options *options_new(const struct version *v,
					    const struct follower_options *like,
					    const char *prefix)
{
	static unsigned made;
	struct follower_options *o = calloc(1, sizeof(*o));
	char text[FOLLOWER_NAME_MAX + 1];

	MUST(o);
	*o = *like;
	if (!like->name)
		snprintf(text, sizeof(text), "%s%u", prefix, ++made);
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
	if (!was->made)
		return;
	MUST(was->options && !version_unused(was));
	for (char **word = was->argv; word && *word; word++)
		free(*word);
	free(was->argv);
	free(was->path);
	free((char *)was->options->name);
	free(was->options->rules_bank);
	free((struct follower_options *)was->options);
}

/* What stays in the row is never another: the thread that hears its bell reads it. */
static void row_write(struct version *v, const struct version *anew)
{
	const char *from = (const char *)anew;
	volatile char *to = (volatile char *)v;

	for (size_t i = 0; i < sizeof(*v); i++)
		if (to[i] != from[i])
			to[i] = from[i];
}

void row_take(struct version *v, const char *path, char **argv,
	      const struct follower_options *like, const char *prefix)
{
	struct version was = *v;
	struct follower_options *o;

	MUST(was.index != was.monitor->leader && was.state == VERSION_ENDED);

	wire_drop(v);
	row_write(v, &(struct version){
		.monitor = was.monitor, .index = was.index, .area = was.area, .brief = was.brief,
		.area_fd = was.area_fd, .brief_fd = was.brief_fd, .key = was.key,
		.image = was.image, .bell_thread = was.bell_thread,
		.argv = argv, .tell = -1, .ends = was.ends, .made = true });
	/* Before anybody reads what it tells. */
	v->monitor->conduct->born[v->index] = v->monitor->conduct->births++;
	/* None of its images has the number of one that the leader has let go. */
	v->rewind.last = was.rewind.last;
	v->path = strdup(path);
	MUST(v->path);
	o = options_new(v, like, prefix);
	v->options = o;
	version_ask(v, o);
	snprintf(v->name, sizeof(v->name), "%s", o->name);
	if (was.tell >= 0)
		close(was.tell);
	row_free(&was);
}

char **row_words(char *const *words)
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
