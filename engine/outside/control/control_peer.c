/*
 * Who may ask: the session's user and root, but no process of its versions.  What a
 * version does is decided by strangers' input; it must not choose who leads.
 *
 * What counts is what the kernel says of the process that connected: its user, the
 * processes that it descends from, and what it has mapped.  A child of a version that has
 * left its family and has unmapped the area is known by its cgroup, where there is one.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/outside/control/control.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/versions.h"

#define ANCESTORS_MAX	4096	/* a chain of processes that is longer is refused */

/* The first process of a version, or one that descends from one. */
static bool is_descendant(struct monitor *m, pid_t pid)
{
	for (unsigned i = 0; i < ANCESTORS_MAX; i++) {
		const struct version *v;

		if (pid <= 1 || pid == getpid())
			return false;
		v = version_of_child(m, pid);
		if (v && process_began(pid) == v->began)
			return true;
		pid = process_parent(pid);
	}
	return true;
}

static bool is_version(struct monitor *m, pid_t pid)
{
	if (is_descendant(m, pid) || cgroup_has(m->cgroup_path, pid))
		return true;
	for (unsigned i = 0; i < m->versions; i++)
		if (version_owns(&m->version[i], pid, pid))
			return true;
	return false;
}

const char *control_peer_refused(struct monitor *m, int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0)
		return "nobody knows who asks";
	if (c.uid != geteuid() && c.uid != 0)
		return "another user's session";
	/* 0: of a pid namespace that is not ours. */
	if (c.pid <= 0)
		return "asked from another pid namespace";
	if (is_version(m, c.pid))
		return "asked by a process of the session itself";
	return NULL;
}
