/*
 * The processes of a server, which stand together: while all that are known do none of them can
 * make another, so who is found then is the last.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "engine/core/must.h"
#include "engine/outside/attach/attach_parts.h"
#include "engine/outside/kernel/process.h"

static bool guests_have(const struct guests *g, pid_t pid)
{
	for (unsigned i = 0; i < g->n; i++)
		if (g->guest[i].pid == pid)
			return true;
	return false;
}

int guest_add(struct guests *g, pid_t pid)
{
	MUST(pid > 0);
	if (guests_have(g, pid) || !process_began(pid))
		return 0;
	if (g->n == GUESTS_MAX)
		return -E2BIG;
	g->guest[g->n++] = (struct guest){ .pid = pid, .memory = -1,
					   .began = process_began(pid) };
	return 0;
}

/* Children of those that are known, in one look. */
static int children_add(struct guests *g)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int result = d ? 0 : -errno;

	while (!result && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name);

		if (pid > 0 && guests_have(g, process_parent(pid)))
			result = guest_add(g, pid);
	}
	if (d)
		closedir(d);
	return result;
}

int guests_children(struct guests *g)
{
	unsigned before;
	int result;

	do {
		before = g->n;
		result = children_add(g);
	} while (!result && g->n > before);
	return result;
}

void guests_go(struct guests *g)
{
	for (unsigned i = 0; i < g->n; i++)
		crowd_release(&g->guest[i].crowd);
	for (unsigned i = 0; i < g->n; i++)
		crowd_go(&g->guest[i].crowd);
}

int guests_stop(struct guests *g, uint64_t until_us)
{
	unsigned stood = 0;
	int result = 0;

	while (!result && stood < g->n) {
		struct guest *one = &g->guest[stood];

		result = crowd_stop(&one->crowd, one->pid, until_us);
		if (result == -ESRCH) {		/* it has ended, as children do */
			*one = g->guest[--g->n];
			result = 0;
		} else {
			stood++;
		}
		if (!result && g->n && stood == g->n)
			result = g->more(g);
	}
	if (!result && !g->n)
		result = -ESRCH;
	if (result)
		guests_go(g);
	return result;
}
