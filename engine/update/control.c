/*
 * Orders over a socket: `update NEW XFORM MS` or `dry NEW XFORM MS`, a line; the answer's last
 * line is `ok` or `refused: WHY`.  Only our own uid, and root, may give one.
 */
#include "engine/update/control.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/update/session.h"

#define LATER		"refused for now: "
#define LINE_SIZE	8200
#define LIMIT_MS	1000	/* for threads to come to their points, unless it is said */
#define LIMIT_MOST_MS	3600000

static bool address(struct sockaddr_un *a, const char *path)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return snprintf(a->sun_path, sizeof(a->sun_path), "%s", path) < (int)sizeof(a->sun_path);
}

static bool is_ours(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		(who.uid == geteuid() || who.uid == 0);
}

/* 0: it is no limit. */
static unsigned limit_read(const char *word)
{
	char *end;
	unsigned long ms = word ? strtoul(word, &end, 10) : LIMIT_MS;

	if (!word)
		return LIMIT_MS;
	return *word < '0' || *word > '9' || *end || ms > LIMIT_MOST_MS ? 0 : (unsigned)ms;
}

static void order(char *line, FILE *to)
{
	char *save, *verb = strtok_r(line, "\t\n", &save), *new = strtok_r(NULL, "\t\n", &save);
	char *xform = strtok_r(NULL, "\t\n", &save), *ms = strtok_r(NULL, "\t\n", &save);
	bool dry = verb && !strcmp(verb, "dry");
	char why[WHY_SIZE] = "";
	enum update_end end;

	if (!xform || !limit_read(ms) || (!dry && strcmp(verb, "update"))) {
		fprintf(to, "refused: no such order\n");
		return;
	}
	end = update_run(new, xform, limit_read(ms), dry, to, why, sizeof(why));
	if (end == UPDATE_DONE)
		fprintf(to, "ok\n");
	else
		fprintf(to, "%s%s\n", end == UPDATE_LATER ? LATER : "refused: ", why);
}

static void serve(int fd)
{
	char line[LINE_SIZE];
	FILE *file = is_ours(fd) ? fdopen(fd, "r+") : NULL;

	if (!file) {
		close(fd);
		return;
	}
	if (fgets(line, sizeof(line), file)) {
		fseek(file, 0, SEEK_CUR);
		order(line, file);
	}
	fclose(file);
}

static void *listen_on(void *arg)
{
	int fd = (int)(long)arg, client;

	while ((client = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0 || errno == EINTR ||
	       errno == ECONNABORTED)
		if (client >= 0)
			serve(client);
	return NULL;
}

/* The server's signals are none of this thread's. */
static int thread_begin(int fd)
{
	sigset_t all, before;
	pthread_t id;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&id, NULL, listen_on, (void *)(long)fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* What stands there is a socket that nobody listens at: a server's that has ended. */
static int place_clear(const char *path, const struct sockaddr_un *a)
{
	struct stat st;
	int fd, err = 0;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : errno;
	if (!S_ISSOCK(st.st_mode))
		return EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return errno;
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 || errno != ECONNREFUSED)
		err = EADDRINUSE;
	close(fd);
	if (!err && unlink(path) < 0 && errno != ENOENT)
		err = errno;
	return err;
}

static int place_take(int fd, const struct sockaddr_un *a)
{
	mode_t mask = umask(0177);
	int err = 0;

	if (bind(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 || listen(fd, 4) < 0)
		err = errno;
	umask(mask);
	return err;
}

/* --- its end: the socket goes with the server that it leads to --------------------------- */

static struct {
	char path[PATH_MAX];
	pid_t of;
	dev_t device;
	ino_t inode;
} place;

/* Never another's: a child's end is none, nor a twin's, and who took the name has it. */
static void place_leave(void)
{
	struct stat st;

	if (place.of != getpid() || session_is_twin())
		return;
	if (lstat(place.path, &st) == 0 && st.st_dev == place.device && st.st_ino == place.inode)
		unlink(place.path);
}

/* By its default action: SA_RESETHAND has put that back. */
static void ended_by(int signal)
{
	place_leave();
	raise(signal);
}

/* Its folder's links are followed; what is at the name may be one by now, of who has the folder. */
static bool place_find(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX], *full;
	int n = -1;

	snprintf(folder, sizeof(folder), "./");
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
	full = realpath(folder, NULL);
	if (full)
		n = snprintf(place.path, sizeof(place.path), "%s/%s", full, name);
	free(full);
	return n > 0 && n < (int)sizeof(place.path);
}

/* What the server itself does of a signal is its own: then it ends by exit(), or does not. */
static void place_keep(const char *path)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP };
	const struct sigaction ours = { .sa_handler = ended_by,
		.sa_flags = (int)SA_RESETHAND | SA_NODEFER };
	struct sigaction is;
	struct stat st;

	if (!place_find(path) || lstat(place.path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	place.device = st.st_dev;
	place.inode = st.st_ino;
	place.of = getpid();
	atexit(place_leave);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &is) == 0 && is.sa_handler == SIG_DFL)
			sigaction(ends[i], &ours, NULL);
}

bool control_open(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;
	struct sockaddr_un a;

	if (fd < 0 || !address(&a, path)) {
		fprintf(stderr, "mve-driver: cannot listen: %s: the name is too long\n", path);
		return false;
	}
	err = place_clear(path, &a);
	if (!err)
		err = place_take(fd, &a);
	if (!err)
		place_keep(path);
	if (!err)
		err = thread_begin(fd);
	if (!err)
		return true;
	fprintf(stderr, "mve-driver: cannot listen: %s: %s\n", path, strerror(err));
	return false;
}

/* Paths are the asker's: the server may have another folder, or see other files. */
static char *path_full(const char *word)
{
	char *full = realpath(word, NULL);

	if (!full && *word == '/')
		full = strdup(word);
	if (!full)
		fprintf(stderr, "mve-driver: cannot find: %s: %s\n", word, strerror(errno));
	return full;
}

static bool order_send(int fd, int argc, char **argv)
{
	char *new = path_full(argv[1]), *xform = new ? path_full(argv[2]) : NULL;

	if (xform)
		dprintf(fd, "%s\t%s\t%s\t%s\n", argv[0], new, xform, argc > 3 ? argv[3] : "");
	free(new);
	free(xform);
	return xform;
}

/* Its status; `later`: another time it may go well. */
static int answer(FILE *from, bool *later)
{
	char line[LINE_SIZE];
	int status = 3;

	while (fgets(line, sizeof(line), from)) {
		bool refused = !strncmp(line, "refused", 7);

		*later |= !strncmp(line, LATER, strlen(LATER));
		status = !strcmp(line, "ok\n") ? 0 : refused ? 1 : 3;
		fputs(line, refused ? stderr : stdout);
	}
	if (status == 3)
		fprintf(stderr, "mve-driver: the server ended\n");
	return status;
}

static int ask_once(const char *path, int argc, char **argv, bool *later)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status;
	struct sockaddr_un a;
	FILE *file;

	*later = false;
	if (fd < 0 || !address(&a, path) || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		fprintf(stderr, "mve-driver: cannot reach: %s: %s\n", path, strerror(errno));
		return 3;
	}
	file = fdopen(fd, "r+");
	status = order_send(fd, argc, argv) ? answer(file, later) : 3;
	fclose(file);
	return status;
}

bool control_is_order(int argc, char **argv)
{
	return (argc == 3 || argc == 4) && limit_read(argv[3]) &&
		(!strcmp(argv[0], "update") || !strcmp(argv[0], "dry"));
}

int control_ask(const char *path, struct patience patience, int argc, char **argv)
{
	bool later;
	int status = ask_once(path, argc, argv, &later);

	while (later && patience.tries-- > 0) {
		usleep(patience.pause_ms * 1000);
		status = ask_once(path, argc, argv, &later);
	}
	return status;
}
