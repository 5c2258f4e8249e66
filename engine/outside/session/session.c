/*
 * Session folders.
 *
 * Two locks, both of the kernel's kind that ends with its holder.  The folder of all
 * sessions is locked by whoever makes or removes one, for as long as that takes.  A
 * session's own folder is locked by its monitor for as long as it lives: a name whose
 * lock is held is in use, whatever its files say.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/session/session.h"
#include "engine/outside/print/text_json.h"

#define JSON_MAX	(16u << 20)	/* a command may have megabytes of words */
#define LOCK_MS		5000	/* whoever makes or removes a session is quicker */

static const char *const session_files[] = {
	"session.json", "session.json.*.tmp", "control", "*.log", "update-*.so",
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

/* --- the folder of all sessions ------------------------------------------------------ */

static int root_open(char *path, size_t size, int how)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *in = "/tmp";
	char name[32] = "mve";
	int n, at, root;

	if (run && run[0] == '/')
		in = run;
	else
		snprintf(name, sizeof(name), "mve-%u", geteuid());
	n = snprintf(path, size, "%s/%s", in, name);
	if ((size_t)n >= size - SESSION_NAME_MAX - 32) {
		path[0] = 0;
		return folder_fault(in, ENAMETOOLONG);
	}
	at = open(in, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return folder_fault(in, errno);
	root = folder_open(at, name, how | FOLDER_CLOSED);
	close(at);
	return root;
}

/* Until it is closed. */
static int root_lock(int root)
{
	for (int ms = 0; flock(root, LOCK_EX | LOCK_NB) < 0; ms++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (ms >= LOCK_MS)
			return -EBUSY;
		usleep(1000);
	}
	return 0;
}

/* The root, and the session's path in s. */
static int root_of(struct session *s, const char *name, int how)
{
	int root;

	folder_why_clear();
	if (!session_name_ok(name))
		return -EINVAL;
	root = root_open(s->folder, sizeof(s->folder), how);
	MUST(strlen(s->folder) + 1 + strlen(name) < sizeof(s->folder));
	strcat(s->folder, "/");
	strcat(s->folder, name);
	strcpy(s->name, name);
	return root;
}

static int root_locked(struct session *s, const char *name, int how)
{
	int root = root_of(s, name, how), result = root < 0 ? root : root_lock(root);

	if (result && root >= 0)
		close(root);
	return result ? result : root;
}

/* --- who lives ------------------------------------------------------------------------ */

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

/* --- session.json --------------------------------------------------------------------- */

static json_t *next_json(const struct session_next *next)
{
	json_t *j = json_array();

	for (unsigned i = 0; i < SESSION_NEXT && next[i].pid; i++)
		json_array_append_new(j, json_pack("{s:i, s:I}", "pid", next[i].pid, "began",
						   (json_int_t)next[i].began));
	return j;
}

int session_save(struct session *s)
{
	json_t *j = json_pack("{s:s, s:i, s:I, s:i, s:I, s:o, s:I, s:s, s:o, s:o}", "name",
			      s->name, "monitor", s->monitor,
			      "monitor_began", (json_int_t)s->monitor_began,
			      "server", s->server, "server_began", (json_int_t)s->server_began,
			      "next", next_json(s->next), "started", (json_int_t)s->started,
			      "tier", s->tier, "command",
			      text_json(s->command), "argv", words_json(s->argv));
	char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
	struct folder_part whole = { text, text ? strlen(text) : 0 };
	int result;

	MUST(s->lock >= 0 && s->monitor > 0);	/* whoever writes it holds it */
	result = text ? folder_write(s->lock, "session.json", &whole, 1) : -ENOMEM;
	json_decref(j);
	free(text);
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

static json_t *json_read(int folder)
{
	size_t len = 0;
	char *text = folder_read(folder, "session.json", JSON_MAX, &len);
	json_t *j = text ? json_loadb(text, len, 0, NULL) : NULL;

	free(text);
	return j;
}

json_t *session_words(const struct session *s)
{
	int folder = session_folder(s);
	json_t *j = folder >= 0 ? json_read(folder) : NULL;
	json_t *words = json_incref(json_object_get(j, "argv"));

	json_decref(j);
	if (folder >= 0)
		close(folder);
	return json_is_array(words) ? words : json_array();
}

/* Its monitor was killed before it could write that another serves: the first that lives. */
static void next_take(struct session *s, const json_t *next)
{
	for (size_t i = 0; i < json_array_size(next); i++) {
		const json_t *row = json_array_get(next, i);
		pid_t pid = (pid_t)number_take(row, "pid");
		uint64_t began = (uint64_t)number_take(row, "began");

		if (!alive(pid, began))
			continue;
		s->server = pid;
		s->server_began = began;
		return;
	}
}

static void json_take(struct session *s, int folder)
{
	json_t *j = json_read(folder);

	s->monitor = (pid_t)number_take(j, "monitor");
	s->monitor_began = (uint64_t)number_take(j, "monitor_began");
	s->server = (pid_t)number_take(j, "server");
	s->server_began = (uint64_t)number_take(j, "server_began");
	s->started = number_take(j, "started");
	text_take(s->tier, sizeof(s->tier), j, "tier");
	text_take(s->command, sizeof(s->command), j, "command");
	if (!alive(s->server, s->server_began) && !alive(s->monitor, s->monitor_began))
		next_take(s, json_object_get(j, "next"));
	json_decref(j);
}

int session_folder(const struct session *s)
{
	struct session other;
	int root = root_of(&other, s->name, FOLDER_LOOK);
	int folder = root < 0 ? root : folder_open(root, s->name, FOLDER_CLOSED);

	if (root >= 0)
		close(root);
	return folder;
}

int session_load(struct session *s, const char *name)
{
	int root, folder;

	memset(s, 0, sizeof(*s));
	s->lock = -1;
	root = root_of(s, name, FOLDER_LOOK);
	if (root < 0)
		return root;
	folder = folder_open(root, name, FOLDER_CLOSED);
	close(root);
	if (folder < 0)
		return folder;
	json_take(s, folder);
	close(folder);
	return 0;
}

/* --- its server ----------------------------------------------------------------------- */

/*
 * What only processes of sessions have is in it.  One that is closed to us is believed to have
 * it: the session's own file names it, with the time that it began.
 */
static bool is_held(pid_t pid)
{
	struct maps maps;
	bool held;

	if (maps_read(pid, &maps))
		return process_like_us(pid) && process_closed(pid);
	held = maps_held(&maps);
	maps_free(&maps);
	return held;
}

/* Its monitor lives: that one holds the lock. */
static bool is_watched(const struct session *s)
{
	int folder = session_folder(s);
	bool held = folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) < 0;

	if (folder >= 0)
		close(folder);
	return held;
}

/* A program that runs unheld has no area; it is known by its family. */
static bool is_server(const struct session *s)
{
	if (is_held(s->server))
		return s->server != s->monitor;
	return s->monitor > 1 && s->server != s->monitor &&
	       process_descends(s->server, s->monitor) && is_watched(s);
}

/* Its memory is gone, and it soon will be: nothing says any more whose it was. */
static bool is_leaving(pid_t pid)
{
	struct maps maps;
	int result = maps_read(pid, &maps);

	if (!result)
		maps_free(&maps);
	return result == -ESRCH;
}

int session_signal(const struct session *s, int sig)
{
	int result;

	if (!alive(s->server, s->server_began))
		return -ESRCH;
	if (!is_server(s))
		return is_leaving(s->server) ? -ESRCH : -EPERM;
	result = process_signal(s->server, s->server_began, sig);
	return result == -EPERM ? -EACCES : result;
}

/* --- its beginning and its end -------------------------------------------------------- */

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < FILES; i++)
		if (!fnmatch(session_files[i], name, 0))
			return true;
	return false;
}

static void files_remove(int folder)
{
	int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	const struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (is_ours(d->d_name))
			unlinkat(folder, d->d_name, 0);
	if (dir)
		closedir(dir);
}

/* Nobody's: its lock is to be had, and what its file names has ended. */
static bool is_free(int folder)
{
	struct session old = { .lock = -1 };

	if (flock(folder, LOCK_EX | LOCK_NB) < 0)
		return false;
	json_take(&old, folder);
	return session_state(&old) == SESSION_GONE;
}

int session_create(struct session *s, const char *name)
{
	int root = root_locked(s, name, FOLDER_MAKE), folder;

	if (root < 0)
		return root;
	folder = folder_open(root, name, FOLDER_MAKE | FOLDER_CLOSED);
	if (folder >= 0 && !is_free(folder)) {
		close(folder);
		folder = -EEXIST;
	}
	if (folder >= 0)
		files_remove(folder);
	close(root);
	s->lock = folder;
	return folder < 0 ? folder : 0;
}

void session_name_make(char *name, size_t size, const char *command)
{
	const char *base = strrchr(command, '/') ? strrchr(command, '/') + 1 : command;
	size_t n = 0;

	MUST(size > SESSION_NAME_MAX);
	for (; *base && n < 32; base++)
		if (n || (*base != '.' && *base != '-'))
			name[n++] = strchr(" ./", *base) ? '-' : *base;
	name[n] = 0;
	if (!session_name_ok(name))
		strcpy(name, "run");
	snprintf(name + strlen(name), size - strlen(name), "-%d", getpid());
	MUST(session_name_ok(name));
}

static void remove_locked(int root, const char *name, int folder)
{
	MUST(session_name_ok(name));
	files_remove(folder);
	unlinkat(root, name, AT_REMOVEDIR);
}

void session_remove(struct session *s)
{
	char path[sizeof(s->folder)];
	int root = root_open(path, sizeof(path), FOLDER_LOOK);

	if (root >= 0 && s->lock >= 0 && !root_lock(root))
		remove_locked(root, s->name, s->lock);
	if (s->lock >= 0)
		close(s->lock);
	if (root >= 0)
		close(root);
	s->lock = -1;
}

void session_sweep(const char *name)
{
	struct session s;
	int root = root_locked(&s, name, FOLDER_LOOK);
	int folder = root < 0 ? -1 : folder_open(root, name, FOLDER_CLOSED);

	if (folder >= 0 && is_free(folder))
		remove_locked(root, name, folder);
	if (folder >= 0)
		close(folder);
	if (root >= 0)
		close(root);
}

int session_each(void (*each)(struct session *s, void *arg), void *arg)
{
	char path[256];
	struct dirent **list = NULL;
	int root = root_open(path, sizeof(path), FOLDER_LOOK);
	int n = root < 0 ? 0 : scandirat(root, ".", &list, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		struct session s;

		if (session_name_ok(list[i]->d_name) && !session_load(&s, list[i]->d_name))
			each(&s, arg);
		free(list[i]);
	}
	free(list);
	if (root >= 0)
		close(root);
	return root < 0 && root != -ENOENT ? root : 0;
}
