/*
 * A program that differs from itself: the follower is the leader's program, begun with the
 * same words, or a copy of it.  Such a difference tells nothing of another version; what mve
 * knows of why it may be is said instead: threads that agree by plain memory, which no call
 * shows, memory that others write, too, and where it differed before and not again.
 */
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/status.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/follow/itself.h"

#define CAUSE_MAX	512

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
	return !v->argv[i] && !leader->argv[i];
}

/* Ours are memfds, too; the program's have names of its own. */
static bool is_own(const struct map *at)
{
	return !strncmp(at->path, "/memfd:mve", 10) || at->shelved;
}

static const struct map *shared_find(const struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->map[i].shared && maps->map[i].write && !is_own(&maps->map[i]))
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

static void shared_add(char *text, pid_t pid)
{
	const struct map *at;
	struct maps maps;

	if (maps_read(pid, &maps))
		maps.n = 0;
	at = shared_find(&maps);
	if (at)
		cause_add(text, "it writes memory that is shared (%.120s), which others may write",
			  at->path[0] ? at->path : "anonymous");
	maps_free(&maps);
}

const char *itself_why(const struct version *v)
{
	static char text[CAUSE_MAX];
	const struct rewind *rw = &v->rewind;
	int threads = status_threads(leading(v->monitor));

	text[0] = 0;
	if (threads > 1)
		cause_add(text, "it has %d threads, which may agree by plain memory (bare "
			  "atomics): no call shows in which order", threads);
	shared_add(text, leading(v->monitor)->server);
	if (rw->races)
		cause_add(text, "it differed %lu time%s before, and not when that was tried again "
			  "(%s)", rw->rewinds, rw->rewinds == 1 ? "" : "s", rw->race[0].text);
	if (!text[0])
		cause_add(text, "it has one thread and shares no memory: no cause is known");
	return text;
}
