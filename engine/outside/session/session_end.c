/*
 * The end of all that is a session's, for `mve stop --kill`: also of what nobody watches any
 * more, since its monitor was killed.
 *
 * Its processes are those that have mapped what its server has: the area of its version, and
 * the page that all versions of the session have; the monitor, which has both, is left to say
 * how it ended.  They are killed first, all of them, and waited for together.  What
 * runs unheld has nothing mapped: it ends with the session's cgroup, where there is one.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/session/session.h"

#define HANDLES		1024	/* waited for at a time */
#define ROUNDS		8	/* they may fork while we look */
#define WAIT_MS		10000
#define MARKS		2

/* What its processes have mapped, by number: no two memfds have one. */
struct marks {
	ino_t inode[MARKS];	/* 0: there is none */
};

struct ending {
	struct marks marks;
	pid_t monitor;		/* has them mapped, too */
	unsigned n;
	struct pollfd handle[HANDLES];
};

static const char *const mark_names[MARKS] = { MAP_AREA, MAP_CONDUCT };

static ino_t mark_in(const struct maps *maps, const char *name)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->map[i].shared && map_is_memory(&maps->map[i], name))
			return maps->map[i].inode;
	return 0;
}

static void marks_read(struct marks *marks, pid_t pid)
{
	struct maps maps = { 0 };
	bool held = !maps_read(pid, &maps) && maps_held(&maps);

	for (unsigned k = 0; k < MARKS; k++)
		marks->inode[k] = held ? mark_in(&maps, mark_names[k]) : 0;
	maps_free(&maps);
}

static bool is_marked(const struct marks *marks, const struct map *map)
{
	bool is = false;

	for (unsigned k = 0; k < MARKS; k++)
		is |= map->inode && map->inode == marks->inode[k] &&
		      map_is_memory(map, mark_names[k]);
	return is;
}

static bool has_mark(const struct marks *marks, pid_t pid)
{
	struct maps maps = { 0 };
	bool has = false;

	maps_read(pid, &maps);
	for (size_t i = 0; i < maps.n && !has; i++)
		has = is_marked(marks, &maps.map[i]);
	maps_free(&maps);
	return has;
}

/* Those that we hold have ended, or the time is over; handles are given back. */
static void all_wait(struct ending *e)
{
	unsigned left = e->n;

	MUST(left <= HANDLES);
	while (left && poll(e->handle, e->n, WAIT_MS) > 0)
		for (unsigned i = 0; i < e->n; i++)
			if (e->handle[i].fd >= 0 && e->handle[i].revents) {
				close(e->handle[i].fd);
				e->handle[i].fd = -1;
				left--;
			}
	for (unsigned i = 0; i < e->n; i++)
		if (e->handle[i].fd >= 0)
			close(e->handle[i].fd);
	e->n = 0;
}

static bool one_kill(struct ending *e, pid_t pid)
{
	int handle = (int)syscall(SYS_pidfd_open, pid, 0);
	bool ours = handle >= 0 && process_began(pid) && has_mark(&e->marks, pid) &&
		    !syscall(SYS_pidfd_send_signal, handle, SIGKILL, NULL, 0);

	MUST(e->n < HANDLES && pid != e->monitor);
	if (!ours && handle >= 0)
		close(handle);
	if (!ours)
		return false;
	e->handle[e->n++] = (struct pollfd){ handle, POLLIN, 0 };
	if (e->n == HANDLES)
		all_wait(e);
	return true;
}

/* All of the machine; false: there was none. */
static bool round_kill(struct ending *e)
{
	DIR *proc = opendir("/proc");
	const struct dirent *d;
	bool any = false;

	while (proc && (d = readdir(proc))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() && pid != e->monitor)
			any |= one_kill(e, pid);
	}
	if (proc)
		closedir(proc);
	return any;
}

int session_kill(const struct session *s)
{
	bool watched = session_state(s) == SESSION_RUNNING;
	struct ending *e = calloc(1, sizeof(*e));
	int result, group;

	if (!e)
		return -ENOMEM;
	e->monitor = watched ? s->monitor : 0;
	marks_read(&e->marks, s->server);
	group = watched ? -1 : cgroup_of(s->server, s->name);
	result = session_signal(s, SIGKILL);
	for (int i = 0; !result && e->marks.inode[0] && i < ROUNDS && round_kill(e); i++)
		all_wait(e);
	if (!result && group >= 0)
		cgroup_kill(group, ".");
	if (group >= 0)
		close(group);
	free(e);
	return result;
}
