/*
 * From a command to a process that stands at its first execve.
 *
 * A version's first process is our child.  It waits until it is seized, then
 * becomes the program; from there on serve.c sees to it.  A follower has no
 * terminal: its input is empty, its output goes to a log in the session's
 * folder, and it is in a session of its own so that the terminal's signals,
 * which the leader gets, are not sent to it as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/abi/boot.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/start/program.h"
#include "engine/outside/start/start.h"

static struct start_keep keep;
static struct sigaction first_xfsz;
static struct rlimit first_size;

/* What mve writes are its own files, and the areas are files of a kind. */
void start_keep_first(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct rlimit most = { RLIM_INFINITY, RLIM_INFINITY };

	sigaction(SIGXFSZ, &ignore, &first_xfsz);
	getrlimit(RLIMIT_FSIZE, &first_size);
	if (setrlimit(RLIMIT_FSIZE, &most) == 0)
		return;
	most.rlim_cur = most.rlim_max = first_size.rlim_max;
	setrlimit(RLIMIT_FSIZE, &most);
}

void start_keep_set(const struct start_keep *k)
{
	struct rlimit most;

	keep = *k;
	MUST(keep.actions < KEEP_ACTIONS);
	keep.sig[keep.actions] = SIGXFSZ;
	keep.action[keep.actions++] = first_xfsz;
	keep.file_size = first_size;
	/* A takeover has hundreds of the old leader's in our hands, whatever its own limit is. */
	getrlimit(RLIMIT_NOFILE, &keep.files);
	most.rlim_cur = most.rlim_max = keep.files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

const struct start_keep *start_kept(void)
{
	return &keep;
}

/* --- finding the program --------------------------------------------------------- */

static char *path_search(const char *name)
{
	const char *dirs = getenv("PATH");
	static char path[4096];

	if (strchr(name, '/'))
		return snprintf(path, sizeof(path), "%s", name) < (int)sizeof(path) ? path : NULL;
	for (dirs = dirs ? dirs : "/usr/bin:/bin"; *dirs;) {
		size_t n = strcspn(dirs, ":");
		struct stat st;

		snprintf(path, sizeof(path), "%.*s%s%s", (int)n, dirs, n ? "/" : "./", name);
		if (!stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
			return path;
		dirs += n + (dirs[n] == ':');
	}
	return NULL;
}

/* Finds the program as a shell does, and looks at it; 0 or an exit code. */
int program_find(const char *name, char **path)
{
	char *at = path_search(name);
	enum program_verdict v;

	if (!at || access(at, F_OK) < 0) {
		say_error("give its path, or check PATH", "cannot run: %s: %s", name,
			  at && errno != ENOENT ? strerror(errno) : "not found");
		return at && errno == EACCES ? EXIT_CANNOT_RUN : EXIT_NOT_FOUND;
	}
	v = program_look(at, geteuid() == 0);
	if (v != PROGRAM_OK && v != PROGRAM_UNKNOWN) {
		say_error(program_hint(v), "cannot run: %s: %s", at, program_reason(v));
		return EXIT_CANNOT_RUN;
	}
	*path = strdup(at);
	MUST(*path);
	return 0;
}

/* Its tool is started by calls that no leader makes: docs/sanitizers.md. */
int program_follows(const char *path, const char *leader)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const char *why = leader ? program_foreign(path, leader) : NULL;

	if (why)
		say_error("give what it starts, with its options; what it exports goes into the "
			  "environment of mve run",
			  "cannot follow: %s: %s", path, why);
	else if (!strncmp(base, "valgrind", 8))
		say_error("a build with -fsanitize=address or memory follows: docs/sanitizers.md",
			  "cannot follow: %s: Valgrind's tool makes calls of its own beside the "
			  "program's", path);
	else
		return 0;
	return EXIT_USE;
}

const char *program_foreign(const char *path, const char *leader)
{
	return program_is_shells(path) && !program_is_shells(leader) ?
	       "a shell runs it, and none runs the leader" : NULL;
}

/* --- becoming it ------------------------------------------------------------------- */

/* mve's caller may have blocked or ignored these: the server is to see it. */
static uint32_t hidden_at_start(void)
{
	static const struct { int sig; uint32_t blocked, ignored; } row[] = {
		{ SIGSYS, SIGSYS_BLOCKED, SIGSYS_IGNORED },
		{ SIGILL, SIGILL_BLOCKED, SIGILL_IGNORED },
		{ SIGSEGV, SIGSEGV_BLOCKED, SIGSEGV_IGNORED },
		{ SIGBUS, SIGBUS_BLOCKED, SIGBUS_IGNORED },
	};
	uint32_t bits = 0;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct sigaction now;

		if (sigismember(&keep.mask, row[i].sig) == 1)
			bits |= row[i].blocked;
		if (!sigaction(row[i].sig, NULL, &now) && now.sa_handler == SIG_IGN)
			bits |= row[i].ignored;
	}
	return bits;
}

/* What mve inherited stays the leader's: a follower holds no pipe open. */
static void outputs_replace(int log, bool apart)
{
	int null = open("/dev/null", O_RDONLY);

	if (apart)
		setsid();
	if (null > 0)
		dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
}

static void keep_give_back(void)
{
	MUST(keep.actions <= KEEP_ACTIONS);
	pthread_sigmask(SIG_SETMASK, &keep.mask, NULL);
	for (size_t i = 0; i < keep.actions; i++)
		sigaction(keep.sig[i], &keep.action[i], NULL);
	setrlimit(RLIMIT_FSIZE, &keep.file_size);
	setrlimit(RLIMIT_NOFILE, &keep.files);
}

/* In the child: says that it may be seized, waits until it is, then becomes the program. */
static _Noreturn void become(struct version *v, const struct foam *f, const int go[2], int tell,
			     int log)
{
	const struct replay *replay = v->monitor->options->replay;
	bool other = f && f->head.process;
	ssize_t n;
	char byte;
	int error;

	monitor_open_child();
	if (replay)
		replay_inherit(replay, f);
	if (v->monitor->cgroup >= 0)
		cgroup_enter(v->monitor->cgroup, v->name);
	close(go[1]);
	while (write(go[0], "", 1) < 0 && errno == EINTR)
		;
	do
		n = read(go[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(EXIT_SYSTEM);	/* the monitor has ended before it had us */
	/* Those of an image come to be in groups of one session, as a twin's do. */
	if (log >= 0)
		outputs_replace(log, !f);
	if (replay)
		replay_inherit_last(replay);
	else
		keep_give_back();
	if (f)
		foam_keep(v);
	else if (v->options)
		layout_ask(&v->monitor->layout);
	execve(other ? f->head.exe : v->path, v->argv, replay ? replay->program.env : environ);
	error = errno;
	if (write(tell, &error, sizeof(error)) < 0)
		_exit(EXIT_SYSTEM);
	_exit(EXIT_CANNOT_RUN);
}

/* Where a follower's output goes; -1 for the leader. */
static int log_open(const struct version *v)
{
	char name[FOLLOWER_NAME_MAX + 8];

	if (!v->options)
		return -1;
	snprintf(name, sizeof(name), "%s.log", v->name);
	return folder_append(v->monitor->session.lock, name);
}

static int seize(struct version *v, pid_t pid)
{
	struct monitor *m = v->monitor;
	struct tracee want = { .pid = pid, .version = v,
			       .hidden = hidden_at_start(), .left = LANES_ALL,
			       .role = exec_role(v, v->options) };

	if (v->options)
		want.vpid = m->options->replay ? m->options->replay->program.head.pid :
						 m->version[0].server;
	if (v->options)
		want.wish = layout_wish(pid, &m->layout);
	MUST(!v->reaped);
	if (pid == v->server)
		v->began = process_began(pid);
	return exec_seize_as(v, pid, &want);
}

/* The child stands, or has ended: from here on it is seen to. */
static int child_take(struct version *v, pid_t pid, int go)
{
	int result;
	char byte;

	MUST(pid > 0 && v->server > 0);
	while (read(go, &byte, 1) < 0 && errno == EINTR)
		;
	result = seize(v, pid);
	if (!result && v->monitor->audit && !v->options)
		result = audit_add(v->monitor->audit, v->server, NULL);
	if (!result && v->index == v->monitor->leader)
		session_note(v->monitor);
	if (!result && write(go, "", 1) != 1)
		result = -errno;
	if (result)
		kill(pid, SIGKILL);
	return result;
}

static void pair_close(const int pair[2])
{
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

/* One process; its execve ends in exec_children(). */
static int process_start(struct version *v, struct foam *f, int tell, int log)
{
	int go[2] = { -1, -1 }, result = 0;
	pid_t pid = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) < 0 || (pid = fork()) < 0)
		result = -errno;
	if (!pid)
		become(v, f, go, tell, log);
	if (!result) {
		if (!f || !f->head.process)
			v->server = pid;
		if (f)
			f->pid = pid;
		close(go[0]);
		go[0] = -1;
		result = child_take(v, pid, go[1]);
	}
	pair_close(go);
	return result;
}

/* Its first process; of an image each. */
static int processes_start(struct version *v, int tell, int log)
{
	const struct replay *replay = v->monitor->options->replay;
	struct foam *f = replay ? replay->foam : NULL;
	int result = process_start(v, f, tell, log);

	while (f && !result && (f = f->next))
		result = process_start(v, f, tell, log);
	if (result && replay && replay->foam)
		foam_drop(v);
	return result;
}

int version_start(struct version *v)
{
	int tell[2] = { -1, -1 }, log = log_open(v), result = 0;

	MUST(!v->images && v->tell < 0);
	if (v->options && log < 0)
		return log;
	if (pipe2(tell, O_CLOEXEC | O_NONBLOCK) < 0)
		result = -errno;
	if (!result)
		result = processes_start(v, tell[1], log);
	v->tell = tell[0];
	tell[0] = -1;
	pair_close(tell);
	if (log >= 0)
		close(log);
	return result;
}

/* Why its first execve failed, as a negative errno; 0 when it did not. */
int version_start_error(struct version *v)
{
	int error = 0;

	_Static_assert(sizeof(error) <= PIPE_BUF, "it comes whole");
	if (v->tell < 0)
		return 0;
	if (read(v->tell, &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(v->tell);
	v->tell = -1;
	return -error;
}

int version_first_exec(struct version *v)
{
	while (!v->gone && !v->images && !v->unheld) {
		siginfo_t info;

		if (waitid(P_PID, (id_t)v->server, &info,
			   WEXITED | WSTOPPED | WNOWAIT | __WALL) < 0)
			return -errno;
		exec_children(v->monitor);
	}
	return v->gone ? version_start_error(v) : 0;
}
