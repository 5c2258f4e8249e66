/*
 * A program that differs from itself: the follower is the leader's program, begun with the
 * same words, or a copy of it.  Such a difference tells nothing of another version; what mve
 * knows of why it may be is said instead: threads that agree by plain memory, which no call
 * shows, memory that others write, too, and where it differed before and not again.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/log/head.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/follow/itself.h"

#define CAUSE_MAX	512

static uint32_t images(const struct version *v)
{
	return v->images < AREA_IMAGES ? v->images : AREA_IMAGES;
}

/* Both have executed a file of that name, and it was not the same one. */
static bool is_renewed(const struct image *a, const struct image *b)
{
	return a->ino && b->ino && (a->ino != b->ino || a->dev != b->dev) &&
	       !strcmp(a->exe, b->exe);
}

/* It was updated, or its file was built or installed anew: its path alone does not tell. */
static bool is_other_build(const struct version *v, const struct version *leader)
{
	const struct replay *r = v->monitor->options->replay;

	MUST(v != leader);
	if (strcmp(v->prepared, leader->prepared))
		return true;
	if (r)
		return program_is_other(&r->program);
	for (uint32_t i = 0; i < images(v); i++)
		for (uint32_t k = 0; k < images(leader); k++)
			if (is_renewed(&v->image[i], &leader->image[k]))
				return true;
	return false;
}

bool itself_is(const struct version *v)
{
	const struct version *leader = leading(v->monitor);
	size_t i = 0;

	if (v == leader || !v->path || !leader->path || strcmp(v->path, leader->path))
		return false;
	if (!v->argv || !leader->argv)
		return false;
	while (v->argv[i] && leader->argv[i] && !strcmp(v->argv[i], leader->argv[i]))
		i++;
	return !v->argv[i] && !leader->argv[i] && !is_other_build(v, leader);
}

/* Ours, or where the inside's lie; what the program has made may have any name. */
static bool is_own(const struct maps *maps, const struct map *at)
{
	return shared_is_ours(at->dev, at->inode) || at->shelved || maps_own(maps, at);
}

static const struct map *shared_find(const struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->map[i].shared && maps->map[i].write && !is_own(maps, &maps->map[i]))
			return &maps->map[i];
	return NULL;
}

static void cause_add(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void cause_add(char *text, const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	MUST(n < CAUSE_MAX);
	if (n)
		n += (size_t)snprintf(text + n, CAUSE_MAX - n, "; ");
	if (n >= CAUSE_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text + n, CAUSE_MAX - n, fmt, ap);
	va_end(ap);
}

/* What the user knows it by: a follower's own descriptors are not its program's. */
static const char *shared_name(const struct map *at)
{
	static const char *const names[][2] = {
		{ "/dev/zero", "anonymous" }, { "/memfd:shared", "anonymous" },
		{ "/memfd:mirror", "of a file" }, { "/memfd:loaded", "of a file" },
		{ "/memfd:segment", "a segment of shmget" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(at->path, names[i][0], strlen(names[i][0])))
			return names[i][1];
	return at->path[0] ? at->path : "anonymous";
}

static bool shared_add(char *text, pid_t pid)
{
	const struct map *at;
	struct maps maps;
	bool found;

	MUST(pid > 0);
	if (maps_read(pid, &maps))
		maps.n = 0;
	at = shared_find(&maps);
	found = at;
	if (found)
		cause_add(text, "it writes memory that is shared (%.120s), which others may write",
			  shared_name(at));
	maps_free(&maps);
	return found;
}

/* Whose slots they are the processes of a version say themselves. */
static bool is_first(const struct version *v, uint32_t i)
{
	pid_t pid = v->area->slot[i].owner ? v->area->slot[i].pid : 0;

	for (uint32_t k = 0; pid > 0 && k < i; k++)
		if (v->area->slot[k].owner && v->area->slot[k].pid == pid)
			return false;
	return pid > 0 && version_owns(v, pid, pid);
}

static int threads_of(const struct version *v, pid_t pid)
{
	int n = 0;

	MUST(pid > 0);
	for (uint32_t i = 0; i < version_slots(v); i++)
		n += v->area->slot[i].pid == pid && v->area->slot[i].owner &&
		     thread_state(pid, (pid_t)v->area->slot[i].owner);
	return n;
}

/* Of its own processes: the leader's are another day's, where it is replayed.  How many it has. */
static int processes_add(char *text, const struct version *v)
{
	int processes = 0, threads = 0, n;
	bool shared = false;

	for (uint32_t i = 0; i < version_slots(v); i++) {
		pid_t pid = v->area->slot[i].pid;

		if (!is_first(v, i))
			continue;
		shared = shared || shared_add(text, pid);
		n = threads_of(v, pid);
		threads = n > threads ? n : threads;
		processes++;
	}
	if (threads > 1)
		cause_add(text, "it has %d threads%s, which may agree by plain memory (bare "
			  "atomics): no call shows in which order", threads,
			  processes > 1 ? " in a process" : "");
	return processes;
}

/* What differs now has gone back `tried` - 1 times itself: what did at other events was a race. */
static void races_add(char *text, const struct rewind *rw, unsigned tried)
{
	uint64_t own = tried ? tried - 1 : 0, times = rw->rewinds > own ? rw->rewinds - own : 0;
	unsigned i = 0;

	while (i < rw->races && !strcmp(rw->race[i].text, rw->why) && rw->race[i].times <= own)
		i++;
	if (times && i < rw->races)
		cause_add(text, "it differed %lu time%s before, and not when that was tried again "
			  "(%s)", times, times == 1 ? "" : "s", rw->race[i].text);
}

const char *itself_why(const struct version *v, unsigned tried)
{
	static char text[CAUSE_MAX];
	int processes;

	text[0] = 0;
	processes = processes_add(text, v);
	races_add(text, &v->rewind, tried);
	if (!text[0])
		cause_add(text, "%s: no cause is known", processes > 1 ?
			  "its processes have one thread each and share no memory" :
			  "it has one thread and shares no memory");
	return text;
}
