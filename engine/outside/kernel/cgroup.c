/*
 * See cgroup.h.  A session's cgroup is mve-NAME-PID-BEGAN: by the last two it is known
 * whether the monitor that made it lives.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/kernel/process.h"

#define AS_FOLDER	(O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define DEPTH		8	/* cgroups that a server makes beneath its own */
#define REMOVE_MS	500
#define KILL_ROUNDS	8	/* where there is no cgroup.kill: it may fork while we look */

/* --- where ---------------------------------------------------------------------------- */

/* One of version 1 is known by what it controls. */
struct hierarchy {
	const char *named;		/* as in /proc/PID/cgroup */
	const char *type, *option;	/* as it is mounted */
};
static const struct hierarchy unified = { "::", "cgroup2 ", "" },
			      of_memory = { ":memory:", "cgroup ", "memory" };

/* Its name in the hierarchy. */
static bool path_in(const struct hierarchy *h, pid_t pid, char *path, size_t size)
{
	char file[48], line[PATH_MAX + 8];
	bool found = false;
	FILE *f;

	snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
	f = fopen(file, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *named = strchr(line, ':');

		line[strcspn(line, "\n")] = 0;
		found = named && !strncmp(named, h->named, strlen(h->named)) &&
			snprintf(path, size, "%s", named + strlen(h->named)) < (int)size;
	}
	if (f)
		fclose(f);
	return found;
}

static bool path_of(pid_t pid, char *path, size_t size)
{
	return path_in(&unified, pid, path, size);
}

/* Where the hierarchy is mounted, and what of it. */
static bool mount_of(const struct hierarchy *h, char *root, char *at, size_t size)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[PATH_MAX * 3];
	bool found = false;

	/* ID PARENT DEVICE ROOT AT OPTIONS [MORE]... - TYPE SOURCE OPTIONS */
	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *type = strstr(line, " - ");

		found = type && !strncmp(type + 3, h->type, strlen(h->type)) &&
			strstr(type, h->option) && size >= PATH_MAX &&
			sscanf(line, "%*s %*s %*s %4095s %4095s", root, at) == 2;
	}
	if (f)
		fclose(f);
	return found;
}

/* The folder of that name; -ENOENT: it is not in what is mounted. */
static int folder_in(const struct hierarchy *h, const char *path)
{
	char root[PATH_MAX], at[PATH_MAX], full[PATH_MAX * 2];
	size_t n;
	int fd;

	if (!mount_of(h, root, at, sizeof(root)))
		return -ENOENT;
	n = strcmp(root, "/") ? strlen(root) : 0;
	if (strncmp(path, root, n) || strstr(path, "/.."))
		return -ENOENT;
	snprintf(full, sizeof(full), "%s%s", at, path + n);
	fd = open(full, AS_FOLDER);
	return fd < 0 ? -errno : fd;
}

static int folder_of(const char *path)
{
	return folder_in(&unified, path);
}

int cgroup_memory(pid_t pid, char *path, size_t size)
{
	if (path_in(&of_memory, pid, path, size))
		return folder_in(&of_memory, path);
	return path_of(pid, path, size) ? folder_of(path) : -ENOENT;
}

int cgroup_own(char *path, size_t size)
{
	return path_of(getpid(), path, size) ? folder_of(path) : -ENOENT;
}

/* Behind the name of a session's in the path; NULL: there is none. */
static char *session_part(char *path, const char *session)
{
	char name[NAME_MAX + 1];
	size_t n = (size_t)snprintf(name, sizeof(name), "/mve-%s-", session);

	MUST(n < sizeof(name));		/* a name of a session is short */
	for (char *at = path; (at = strstr(at, name)); at += n)
		if (at[n + strspn(at + n, "0123456789-")] == '/')
			return at + n + strspn(at + n, "0123456789-");
	return NULL;
}

int cgroup_of(pid_t pid, const char *session)
{
	char path[PATH_MAX], *end;

	if (!path_of(pid, path, sizeof(path)))
		return -ENOENT;
	end = session_part(path, session);
	if (!end)
		return -ENOENT;
	*end = 0;
	return folder_of(path);
}

bool cgroup_has(const char *path, pid_t pid)
{
	char its[PATH_MAX];
	size_t n = strlen(path);

	return n && path_of(pid, its, sizeof(its)) && !strncmp(its, path, n) &&
	       (!its[n] || its[n] == '/');
}

/* --- its end -------------------------------------------------------------------------- */

static bool is_populated(int cgroup)
{
	int fd = openat(cgroup, "cgroup.events", O_RDONLY | O_CLOEXEC);
	char text[256] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n <= 0 || !strstr(text, "populated 0");
}

static void remove_beneath(int at, const char *name, int depth)
{
	int fd = openat(at, name, AS_FOLDER);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	while (dir && depth && (d = readdir(dir)))
		if (d->d_type == DT_DIR && d->d_name[0] != '.')
			remove_beneath(fd, d->d_name, depth - 1);
	if (dir)
		closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

/* What was killed may need a moment. */
static void remove_empty(int own, const char *name, int wait_ms)
{
	int fd = openat(own, name, AS_FOLDER);

	for (int ms = 0; fd >= 0 && ms < wait_ms && is_populated(fd); ms++)
		usleep(1000);
	if (fd >= 0 && !is_populated(fd))
		remove_beneath(own, name, DEPTH);
	if (fd >= 0)
		close(fd);
}

/* Of sessions whose monitor is gone. */
static void sweep(int own)
{
	int again = openat(own, ".", AS_FOLDER);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	const struct dirent *d;

	while (dir && (d = readdir(dir))) {
		const char *began = strrchr(d->d_name, '-'), *pid = began;

		while (pid && pid > d->d_name && pid[-1] != '-')
			pid--;
		if (!strncmp(d->d_name, "mve-", 4) && pid && pid > d->d_name + 4 &&
		    process_began(atoi(pid)) != strtoull(began + 1, NULL, 10))
			remove_empty(own, d->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

/* --- its life ------------------------------------------------------------------------- */

static int folder_make(int at, const char *name)
{
	int fd;

	if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(at, name, AS_FOLDER);
	return fd < 0 ? -errno : fd;
}

/* A copy of the monitor has the first one's. */
void cgroup_name(char *name, size_t size, const char *session)
{
	static pid_t pid;
	static uint64_t began;

	if (!pid) {
		pid = getpid();
		began = process_began(pid);
	}
	MUST(!strchr(session, '/'));
	snprintf(name, size, "mve-%s-%d-%lu", session, pid, began);
	MUST(strlen(name) < size - 1);		/* cut, it would be another's */
}

int cgroup_make(int own, const char *session)
{
	char name[NAME_MAX + 1];

	sweep(own);
	cgroup_name(name, sizeof(name), session);
	return folder_make(own, name);
}

void cgroup_path(char *to, size_t size, const char *path, const char *session)
{
	char name[NAME_MAX + 1];

	cgroup_name(name, sizeof(name), session);
	snprintf(to, size, "%s/%s", strcmp(path, "/") ? path : "", name);
}

void cgroup_remove(int own, const char *session)
{
	char name[NAME_MAX + 1];

	cgroup_name(name, sizeof(name), session);
	remove_empty(own, name, REMOVE_MS);
}

static bool word_write(int at, const char *name, const char *word)
{
	int fd = openat(at, name, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, word, strlen(word)) > 0;

	if (fd >= 0)
		close(fd);
	return done;
}

void cgroup_enter(int session, const char *version)
{
	cgroup_put(session, version, 0);
}

void cgroup_put(int session, const char *version, pid_t pid)
{
	char word[16];
	int fd;

	MUST(session >= 0 && *version && !strchr(version, '/'));
	fd = folder_make(session, version);
	if (fd >= 0) {
		snprintf(word, sizeof(word), "%d", pid);
		word_write(fd, "cgroup.procs", word);
		close(fd);
	}
}

/* Before Linux 5.14 there is no word for it. */
static bool kill_each(int version)
{
	int fd = openat(version, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool any = false;
	pid_t pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		any |= pid > 0 && !process_signal(pid, process_began(pid), SIGKILL);
	if (f)
		fclose(f);
	return any;
}

bool cgroup_kill(int session, const char *version)
{
	int fd;
	bool any;

	MUST(session >= 0 && *version && !strchr(version, '/'));	/* all in it are killed */
	fd = openat(session, version, AS_FOLDER);
	any = fd >= 0 && is_populated(fd);

	if (any && !word_write(fd, "cgroup.kill", "1"))
		for (int i = 0; i < KILL_ROUNDS && kill_each(fd); i++)
			;
	if (fd >= 0)
		close(fd);
	return any;
}
