/*
 * What a process may do: read of one that is written into an image, and made true of one that is
 * made of it.  What is equal already is left alone, so that who has no rights to give can replay
 * what had his own.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/kernel/remote.h"

#define LINE_MOST	(16 * FOAM_GROUPS)
#define CAPS		64

static bool ids_read(const char *at, uint32_t id[4])
{
	return sscanf(at, "%u%u%u%u", &id[0], &id[1], &id[2], &id[3]) == 4;
}

static int groups_read(const char *at, struct foam_rights *r)
{
	int n = 0;

	for (unsigned id; sscanf(at, "%u%n", &id, &n) == 1; at += n) {
		if (r->groups == FOAM_GROUPS)
			return -E2BIG;
		r->group[r->groups++] = id;
	}
	return 0;
}

/* How many of the lines that must be there this was; or a negative errno. */
static int line_read(const char *line, struct foam_rights *r)
{
	const struct { const char *name; uint64_t *to; } caps[] = {
		{ "CapInh:", &r->inheritable }, { "CapPrm:", &r->permitted },
		{ "CapEff:", &r->effective }, { "CapBnd:", &r->bounding },
		{ "CapAmb:", &r->ambient },
	};

	if (!strncmp(line, "Groups:", 7))
		return groups_read(line + 7, r);
	if (!strncmp(line, "Uid:", 4))
		return ids_read(line + 4, r->uid);
	if (!strncmp(line, "Gid:", 4))
		return ids_read(line + 4, r->gid);
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
		if (!strncmp(line, caps[i].name, 7))
			sscanf(line + 7, "%lx", caps[i].to);
	sscanf(line, "NoNewPrivs:%u", &r->no_new);
	return 0;
}

int foam_rights_note(pid_t pid, struct foam_rights *r)
{
	char name[64], line[LINE_MOST];
	int found = 0, result = 0;
	FILE *f;

	memset(r, 0, sizeof(*r));
	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	f = fopen(name, "re");
	if (!f)
		return -errno;
	while (result >= 0 && fgets(line, sizeof(line), f)) {
		result = strchr(line, '\n') ? line_read(line, r) : -E2BIG;
		found += result > 0;
	}
	fclose(f);
	return result < 0 ? result : found == 2 ? 0 : -ESRCH;
}

static long bounding_drop(struct remote *r, uint64_t drop)
{
	long result = 0;

	for (uint64_t cap = 0; cap < CAPS && !result; cap++)
		if (drop >> cap & 1)
			result = REMOTE(r, SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
	return result;
}

static long groups_make(struct remote *r, uint64_t room, const struct foam_rights *want)
{
	long result = memory_write(r->memory, room, want->group,
				   want->groups * sizeof(*want->group));

	if (!result)
		result = REMOTE(r, SYS_setgroups, want->groups, room);
	if (!result)
		result = REMOTE(r, SYS_setresgid, want->gid[0], want->gid[1], want->gid[2]);
	return result;
}

/* Capabilities stay over the change, and become what they are to be behind it. */
static long users_make(struct remote *r, uint64_t room, const struct foam_rights *want)
{
	struct {
		struct __user_cap_header_struct head;
		struct __user_cap_data_struct data[2];
	} caps = { { _LINUX_CAPABILITY_VERSION_3, 0 }, { { 0, 0, 0 } } };
	long result = REMOTE(r, SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0);

	for (int i = 0; i < 2; i++)
		caps.data[i] = (struct __user_cap_data_struct){
			(uint32_t)(want->effective >> 32 * i),
			(uint32_t)(want->permitted >> 32 * i),
			(uint32_t)(want->inheritable >> 32 * i) };
	if (!result)
		result = REMOTE(r, SYS_setresuid, want->uid[0], want->uid[1], want->uid[2]);
	if (!result)
		result = memory_write(r->memory, room, &caps, sizeof(caps));
	if (!result)
		result = REMOTE(r, SYS_capset, room, room + sizeof(caps.head));
	for (uint64_t cap = 0; cap < CAPS && !result; cap++)
		if (want->ambient >> cap & 1)
			result = REMOTE(r, SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0,
					0);
	return result ? result : REMOTE(r, SYS_prctl, PR_SET_KEEPCAPS, 0, 0, 0, 0);
}

static long rest_make(struct remote *r, const struct foam_rights *want)
{
	if (want->gid[3] != want->gid[1])
		REMOTE(r, SYS_setfsgid, want->gid[3]);
	if (want->uid[3] != want->uid[1])
		REMOTE(r, SYS_setfsuid, want->uid[3]);
	return want->no_new ? REMOTE(r, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) : 0;
}

int foam_rights_make(struct remote *r, uint64_t room, const struct foam_rights *want)
{
	struct foam_rights now;
	long result = foam_rights_note(r->pid, &now);

	MUST(want->groups <= FOAM_GROUPS);
	if (result || !memcmp(&now, want, sizeof(now)))
		return (int)result;
	result = bounding_drop(r, now.bounding & ~want->bounding);
	if (!result)
		result = groups_make(r, room, want);
	if (!result)
		result = users_make(r, room, want);
	if (!result)
		result = rest_make(r, want);
	if (!result)
		result = foam_rights_note(r->pid, &now);
	if (!result && memcmp(&now, want, sizeof(now)))
		result = -EPERM;
	return (int)result;
}
