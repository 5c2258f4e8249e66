/*
 * Session folders.  A process is known by its pid and the time it began, so a
 * pid that was given out again is never taken for a monitor or a server.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/outside/session.h"

static const char *const session_files[] = {
	"session.json", "session.tmp", "control", "*.log",
};
#define FILES (sizeof(session_files) / sizeof(session_files[0]))

bool session_name_ok(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n > SESSION_NAME_MAX || name[0] == '.' || name[0] == '-')
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789._-") == n;
}

static int folder_make(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	return 0;
}

int session_root(char *path, size_t size)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	int n;

	if (run && run[0] == '/')
		n = snprintf(path, size, "%s/mve", run);
	else
		n = snprintf(path, size, "/tmp/mve-%u", geteuid());
	if ((size_t)n >= size - SESSION_NAME_MAX - 32)
		return -ENAMETOOLONG;
	return folder_make(path);
}

static int folder_of(struct session *s, const char *name)
{
	int result;

	if (!session_name_ok(name))
		return -EINVAL;
	result = session_root(s->folder, sizeof(s->folder));
	if (result)
		return result;
	strcat(s->folder, "/");
	strcat(s->folder, name);
	strcpy(s->name, name);
	return 0;
}

#define STATE		3	/* fields of /proc/PID/stat, counted from 1 */
#define PARENT		4
#define THREADS		20
#define BEGAN		22

/* The field in such a text, from the third on, which stands behind the name; NULL: none. */
static const char *field_in(const char *text, int want)
{
	const char *at = strrchr(text, ')');

	for (int field = STATE - 1; field < want && at; field++)
		at = strchr(at + 1, ' ');
	return at && at[1] ? at + 1 : NULL;
}

static uint64_t number_in(const char *text, int want)
{
	const char *at = field_in(text, want);

	return at ? strtoull(at, NULL, 10) : 0;
}

/* The state is that of its first thread, which may have ended before the others. */
static bool is_dead(const char *text)
{
	const char *state = field_in(text, STATE);

	return !state || *state == 'X' || (*state == 'Z' && number_in(text, THREADS) <= 1);
}

/* A number of /proc/PID/stat; 0: it is dead, or not there. */
static uint64_t stat_field(pid_t pid, int want)
{
	char name[64], text[1024];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	return is_dead(text) ? 0 : number_in(text, want);
}

uint64_t process_began(pid_t pid)
{
	return stat_field(pid, BEGAN);
}

pid_t process_parent(pid_t pid)
{
	return (pid_t)stat_field(pid, PARENT);
}

static bool alive(pid_t pid, uint64_t began)
{
	return pid > 0 && began && process_began(pid) == began;
}

enum session_state session_state(const struct session *s)
{
	if (alive(s->monitor, s->monitor_began))
		return SESSION_RUNNING;
	return alive(s->server, s->server_began) ? SESSION_UNWATCHED : SESSION_GONE;
}

int session_create(struct session *s, const char *name)
{
	struct session old;
	int result = folder_of(s, name);

	if (result)
		return result;
	if (!mkdir(s->folder, 0700))
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (!session_load(&old, name) && session_state(&old) == SESSION_GONE)
		session_remove(&old);
	return mkdir(s->folder, 0700) < 0 ? -errno : 0;
}

void session_name_make(char *name, size_t size, const char *command)
{
	const char *base = strrchr(command, '/') ? strrchr(command, '/') + 1 : command;
	size_t n = 0;

	for (; *base && n < 32; base++)
		if (n || (*base != '.' && *base != '-'))
			name[n++] = strchr(" ./", *base) ? '-' : *base;
	name[n] = 0;
	if (!session_name_ok(name))
		strcpy(name, "run");
	snprintf(name + strlen(name), size - strlen(name), "-%d", getpid());
}

int session_save(struct session *s)
{
	char path[300], temp[300];
	json_t *j = json_pack("{s:s, s:i, s:I, s:i, s:I, s:I, s:s, s:s%}", "name", s->name,
			      "monitor", s->monitor, "monitor_began", (json_int_t)s->monitor_began,
			      "server", s->server, "server_began", (json_int_t)s->server_began,
			      "started", (json_int_t)s->started, "tier", s->tier, "command",
			      s->command, strlen(s->command));
	int result = 0;

	if (!j)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/session.json", s->folder);
	snprintf(temp, sizeof(temp), "%s/session.tmp", s->folder);
	errno = 0;
	if (json_dump_file(j, temp, JSON_INDENT(1)) < 0 || rename(temp, path) < 0)
		result = errno ? -errno : -ENOSPC;
	json_decref(j);
	return result;
}

static void text_take(char *to, size_t size, const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	snprintf(to, size, "%s", text ? text : "");
}

static int64_t number_take(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

int session_load(struct session *s, const char *name)
{
	char path[300];
	json_t *j;
	int result;

	memset(s, 0, sizeof(*s));
	result = folder_of(s, name);
	if (result)
		return result;
	if (access(s->folder, F_OK) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/session.json", s->folder);
	j = json_load_file(path, 0, NULL);
	s->monitor = (pid_t)number_take(j, "monitor");
	s->monitor_began = (uint64_t)number_take(j, "monitor_began");
	s->server = (pid_t)number_take(j, "server");
	s->server_began = (uint64_t)number_take(j, "server_began");
	s->started = number_take(j, "started");
	text_take(s->tier, sizeof(s->tier), j, "tier");
	text_take(s->command, sizeof(s->command), j, "command");
	json_decref(j);
	return 0;
}

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < FILES; i++)
		if (!fnmatch(session_files[i], name, 0))
			return true;
	return false;
}

void session_remove(const struct session *s)
{
	DIR *folder = opendir(s->folder);
	const struct dirent *d;

	while (folder && (d = readdir(folder)))
		if (is_ours(d->d_name))
			unlinkat(dirfd(folder), d->d_name, 0);
	if (folder)
		closedir(folder);
	rmdir(s->folder);
}

int session_each(void (*each)(struct session *s, void *arg), void *arg)
{
	char root[256];
	struct dirent **list = NULL;
	int result = session_root(root, sizeof(root));
	int n = result ? 0 : scandir(root, &list, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		struct session s;

		if (session_name_ok(list[i]->d_name) && !session_load(&s, list[i]->d_name))
			each(&s, arg);
		free(list[i]);
	}
	free(list);
	return result;
}
