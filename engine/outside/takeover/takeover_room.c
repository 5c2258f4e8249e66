/*
 * Taking over: room for descriptors.  A process that led and has taken the right to have
 * descriptors from itself, for good, follows all the same; but it cannot receive them
 * again.  (One that has followed ever since keeps its limit to itself, see
 * inside/state/limits.c.)  Whoever has CAP_SYS_RESOURCE may give it room again; the
 * inside puts its limit back when it has taken.  Otherwise its version does not lead as long
 * as that process lives: its connections would be lost.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/takeover/takeover_parts.h"

#define FOR_TAKING	8	/* our sockets, and what is on its way to its number */

/* prlimit tells it only to those with the same ids; this, everybody. */
static uint64_t hard_limit(pid_t pid)
{
	uint64_t hard = UINT64_MAX;	/* also where it says "unlimited" */
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Max open files %*s %lu", &hard) == 1)
			break;
	if (f)
		fclose(f);
	return hard;
}

/* The first number behind all that it has open. */
static uint64_t numbers_used(pid_t pid)
{
	const struct dirent *d;
	uint64_t used = 0;
	char path[64];
	DIR *list;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	list = opendir(path);
	while (list && (d = readdir(list))) {
		uint64_t number = strtoul(d->d_name, NULL, 10);

		if (d->d_name[0] != '.' && number >= used)
			used = number + 1;
	}
	if (list)
		closedir(list);
	return used;
}

static bool room_given(pid_t pid, uint64_t needs)
{
	const struct rlimit room = { needs, needs };

	return !prlimit(pid, RLIMIT_NOFILE, &room, NULL);
}

static bool has_room(const struct version *v, pid_t pid, pid_t twin)
{
	uint64_t hard = hard_limit(pid), needs;

	MUST(pid > 0 && twin > 0 && pid != twin);

	if (hard >= process_table(twin) + FOR_TAKING)	/* which is cheaper to ask */
		return true;
	needs = numbers_used(twin) + FOR_TAKING;
	if (hard >= needs || room_given(pid, needs))
		return true;
	say_log("take", "process %d of %s may have %lu descriptors and needs %lu: %s", pid,
		v->name, hard, needs, strerror(errno));
	return false;
}

/* The slots are the version's to write: what they say is asked for. */
bool successor_has_room(struct monitor *m, const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];
		pid_t pid = (pid_t)s->owner;
		uint32_t lane = s->lane - 1;
		pid_t twin;

		if (pid <= 0 || pid != s->pid || !lane_is(m, lane))
			continue;
		twin = lane_at(m, m->leader, lane)->pid;
		if (twin > 0 && version_owns(leading(m), twin, twin) && version_owns(v, pid, pid) &&
		    !has_room(v, pid, twin))
			return false;
	}
	return true;
}
