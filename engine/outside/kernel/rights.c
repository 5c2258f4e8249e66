/*
 * Which user and groups a process acts as, and what it may become, as the kernel has it; and
 * a child of ours that is to have no more than it.
 */
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/rights.h"
#include "engine/outside/monitor/monitor.h"

struct rights {
	unsigned uid[4], gid[4];
	uint64_t permitted, ambient, bounding, inheritable;
	uint64_t groups;	/* their hash */
};

#define HASH_START	0xcbf29ce484222325ull
#define HASH_STEP	0x100000001b3ull

static uint64_t hash_line(const char *text)
{
	uint64_t h = HASH_START;

	while (*text)
		h = (h ^ (uint8_t)*text++) * HASH_STEP;
	return h;
}

/* One line of the file; groups may be so many that theirs comes in pieces. */
static unsigned line_read(const char *line, struct rights *r)
{
	/* Of some sixty lines these are few, and a server may stand meanwhile. */
	if (!strchr("UGC", *line))
		return 0;
	if (sscanf(line, "Uid:%u%u%u%u", r->uid, r->uid + 1, r->uid + 2, r->uid + 3) == 4 ||
	    sscanf(line, "Gid:%u%u%u%u", r->gid, r->gid + 1, r->gid + 2, r->gid + 3) == 4)
		return 1;
	sscanf(line, "CapPrm:%lx", &r->permitted);
	sscanf(line, "CapAmb:%lx", &r->ambient);
	sscanf(line, "CapBnd:%lx", &r->bounding);
	sscanf(line, "CapInh:%lx", &r->inheritable);
	return 0;
}

static bool rights_read(pid_t pid, struct rights *r)
{
	bool groups = false, part = false;
	char path[64], line[256];
	unsigned found = 0;
	FILE *f;

	*r = (struct rights){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		groups = part ? groups : !strncmp(line, "Groups:", 7);
		part = !strchr(line, '\n');
		if (groups)
			r->groups = r->groups * HASH_STEP ^ hash_line(line);
		else
			found += line_read(line, r);
	}
	if (f)
		fclose(f);
	return found == 2;
}

/* The ids alone: clients wait. */
static bool ids_read(pid_t pid, struct rights *r)
{
	return process_ids(pid, r->uid, r->gid);
}

bool rights_cover(pid_t asker, pid_t twin)
{
	struct rights a, b;

	return ids_read(asker, &a) &&
	       (!a.uid[1] || (ids_read(twin, &b) && !memcmp(a.uid, b.uid, sizeof(a.uid)) &&
			      !memcmp(a.gid, b.gid, sizeof(a.gid))));
}

/* Capabilities in a user namespace of its own are none here. */
static bool is_ours(pid_t pid)
{
	struct stat ours, theirs;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return !stat("/proc/self/ns/user", &ours) && !stat(path, &theirs) &&
	       ours.st_ino == theirs.st_ino;
}

static void sort(const unsigned *id, uint32_t to[3])
{
	for (int i = 0; i < 3; i++) {
		int at = i;

		for (; at && to[at - 1] > id[i]; at--)
			to[at] = to[at - 1];
		to[at] = id[i];
	}
	MUST(to[0] <= to[1] && to[1] <= to[2]);		/* keys are compared by their bytes */
}

static bool has(uint64_t caps, int cap)
{
	MUST(cap >= 0 && cap < 64);
	return caps >> cap & 1;
}

bool rights_key_read(pid_t tid, struct rights_key *key)
{
	struct rights r;

	memset(key, 0, sizeof(*key));
	if (!rights_read(tid, &r))
		return false;
	key->caps = is_ours(tid) ? r.permitted : 0;
	if (!has(key->caps, CAP_SETUID))
		sort(r.uid, key->uid);
	if (!has(key->caps, CAP_SETGID)) {
		sort(r.gid, key->gid);
		key->groups = r.groups;
	}
	return true;
}

bool rights_change_by_exec(pid_t tid, bool by_file)
{
	struct rights r;

	if (!rights_read(tid, &r))
		return true;
	if (!is_ours(tid))
		return by_file;
	if (!r.uid[0] || !r.uid[1])
		return r.permitted != (r.bounding | r.inheritable) ||
		       (by_file && !has(r.permitted, CAP_SETUID));
	return by_file || r.permitted != r.ambient;
}

/* --- worn by us --------------------------------------------------------------------------- */

static bool groups_read(pid_t pid, struct rights_worn *w)
{
	char path[48], *line = NULL, *at, *end;
	size_t size = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && !found && getline(&line, &size, f) > 0)
		found = !strncmp(line, "Groups:", 7);
	for (at = line + 7; found && w->groups < WORN_GROUPS; at = end) {
		gid_t group = (gid_t)strtoul(at, &end, 10);

		if (end == at)
			break;
		w->group[w->groups++] = group;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

bool rights_worn_read(pid_t pid, struct rights_worn *w)
{
	struct rights r;

	memset(w, 0, sizeof(*w));
	if (!rights_read(pid, &r) || !groups_read(pid, w))
		return false;
	/* Files are opened with the rights of the file system's ids. */
	w->uid = r.uid[3];
	w->gid = r.gid[3];
	w->caps = is_ours(pid) ? r.permitted : 0;
	return true;
}

/* Who has no right to change them may have the same. */
static bool groups_wear(const struct rights_worn *w)
{
	gid_t ours[WORN_GROUPS];
	int n = getgroups(WORN_GROUPS, ours);

	return (n == (int)w->groups && !memcmp(ours, w->group, w->groups * sizeof(*ours))) ||
	       !setgroups(w->groups, w->group);
}

static bool caps_wear(uint64_t most)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return false;
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(most >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return !syscall(SYS_capset, &head, data);
}

bool rights_wear(const struct rights_worn *w)
{
	pid_t parent = getppid();

	MUST(w->groups <= WORN_GROUPS);
	if (!groups_wear(w) || setresgid(w->gid, w->gid, w->gid) ||
	    setresuid(w->uid, w->uid, w->uid) || !caps_wear(w->caps) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	/* Our memory is the monitor's; and what ends us with it is lost with the rights. */
	return !prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) && !prctl(PR_SET_PDEATHSIG, SIGKILL) &&
	       getppid() == parent;
}
