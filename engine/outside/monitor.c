/*
 * The life of a session: make its folder and its area, start the server under
 * ptrace until its first instruction, then sit in one io_uring loop until the
 * last process is gone.
 *
 * The server is our child, so its exit status is ours.  Terminal signals reach
 * it by themselves; others that are sent to mve are passed on.  When the server
 * has ended but processes of it go on (a daemon), mve returns to its caller as
 * the server did, and a copy of the monitor stays with them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/abi/boot.h"
#include "engine/outside/monitor.h"
#include "engine/outside/program.h"
#include "engine/outside/say.h"

#define RING_ENTRIES	64
#define LOOK_MS		250	/* how often daemons are looked after */
#define BIRTH_MS	500	/* how long a forked process may take to begin */

enum wake { WAKE_SIGNAL = 1, WAKE_BELL, WAKE_CONTROL, WAKE_TIMER };

static sigset_t mask_at_start;
/* Ours are other than the server's; it gets these back. */
static const int changed[] = { SIGPIPE, SIGCHLD, SIGXFSZ };
#define CHANGED (sizeof(changed) / sizeof(changed[0]))
static struct sigaction action_at_start[CHANGED];
static struct rlimit file_at_start;

/* --- the area ----------------------------------------------------------------- */

/* Holds the robust futex that tells the inside that we live. */
static int alive_hold(struct monitor *m)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t *mutex = (pthread_mutex_t *)&m->area->alive;

	_Static_assert(sizeof(pthread_mutex_t) <= sizeof(m->area->alive), "a mutex fits");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(mutex, &attr);
	m->area->monitor_pid = getpid();
	return -pthread_mutex_lock(mutex);
}

static int area_make(struct monitor *m)
{
	m->area_fd = memfd_create("mve-area", MFD_CLOEXEC);
	if (m->area_fd < 0 || ftruncate(m->area_fd, sizeof(struct area)) < 0)
		return -errno;
	m->area = mmap(NULL, sizeof(struct area), PROT_READ | PROT_WRITE, MAP_SHARED, m->area_fd,
		       0);
	if (m->area == MAP_FAILED)
		return -errno;
	m->area->magic = AREA_MAGIC;
	m->area->version = AREA_VERSION;
	m->area->tier = m->options->tier;
	m->area->role = m->options->role;
	return alive_hold(m);
}

/* --- the doorbell ---------------------------------------------------------------- */

static void *bell_wait(void *arg)
{
	struct monitor *m = arg;
	uint32_t heard = 0;

	for (;;) {
		uint32_t now = __atomic_load_n(&m->area->doorbell, __ATOMIC_ACQUIRE);
		uint64_t one = 1;

		if (now != heard && write(m->bell_fd, &one, sizeof(one)) < 0)
			return NULL;
		heard = now;
		syscall(SYS_futex, &m->area->doorbell, FUTEX_WAIT, now, NULL, NULL, 0);
	}
}

static void wake_on(struct monitor *m, int fd, enum wake what)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&m->ring);

	MUST(sqe);
	io_uring_prep_poll_add(sqe, fd, POLLIN);
	io_uring_sqe_set_data64(sqe, what);
}

static void wake_later(struct monitor *m)
{
	static struct __kernel_timespec look = { 0, LOOK_MS * 1000000L };
	struct io_uring_sqe *sqe = io_uring_get_sqe(&m->ring);

	MUST(sqe);
	io_uring_prep_timeout(sqe, &look, 0, 0);
	io_uring_sqe_set_data64(sqe, WAKE_TIMER);
}

/* The parts that a copy of the monitor needs anew: ring and bell thread. */
static int loop_open(struct monitor *m)
{
	int result = io_uring_queue_init(RING_ENTRIES, &m->ring, 0);

	if (result < 0)
		return result;
	m->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->bell_fd < 0)
		return -errno;
	result = pthread_create(&m->bell_thread, NULL, bell_wait, m);
	if (result)
		return -result;
	wake_on(m, m->signal_fd, WAKE_SIGNAL);
	wake_on(m, m->bell_fd, WAKE_BELL);
	wake_on(m, m->control_fd, WAKE_CONTROL);
	return 0;
}

/* --- the server ------------------------------------------------------------------- */

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

		if (sigismember(&mask_at_start, row[i].sig) == 1)
			bits |= row[i].blocked;
		if (!sigaction(row[i].sig, NULL, &now) && now.sa_handler == SIG_IGN)
			bits |= row[i].ignored;
	}
	return bits;
}

/* In the child: waits until it is seized, then becomes the server. */
static _Noreturn void become_server(struct monitor *m, const char *path, const int go[2],
				    int tell)
{
	char byte;
	int error;

	close(go[1]);
	while (read(go[0], &byte, 1) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &mask_at_start, NULL);
	for (size_t i = 0; i < CHANGED; i++)
		sigaction(changed[i], &action_at_start[i], NULL);
	setrlimit(RLIMIT_FSIZE, &file_at_start);
	execv(path, m->options->argv);
	error = errno;
	if (write(tell, &error, sizeof(error)) < 0)
		_exit(EXIT_SYSTEM);
	_exit(EXIT_CANNOT_RUN);
}

/* Waits for the exec stop of the first program; 0 or why it did not come. */
static int first_exec(struct monitor *m, int tell)
{
	int error = 0;

	while (!m->server_ended && !m->area->images && !m->unheld) {
		siginfo_t info;

		if (waitid(P_PID, (id_t)m->server, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL) < 0)
			return -errno;
		serve_child_events(m);
	}
	if (m->server_ended && read(tell, &error, sizeof(error)) == sizeof(error))
		return -error;
	return 0;
}

static int server_start(struct monitor *m, const char *path)
{
	int go[2], tell[2], result;

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(tell, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	m->server = fork();
	if (m->server < 0)
		return -errno;
	if (m->server == 0)
		become_server(m, path, go, tell[1]);
	result = serve_seize(m, m->server, hidden_at_start());
	if (!result && m->audit)
		result = audit_add(m->audit, m->server, NULL);
	if (result)
		kill(m->server, SIGKILL);
	close(go[0]);
	close(go[1]);
	close(tell[1]);
	if (!result)
		result = first_exec(m, tell[0]);
	close(tell[0]);
	return result;
}

/* --- signals ------------------------------------------------------------------------ */

static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM,
				 SIGWINCH, SIGCONT };
#define PASSED_ON (sizeof(passed_on) / sizeof(passed_on[0]))

static int signals_open(struct monitor *m)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < PASSED_ON; i++)
		sigaddset(&set, passed_on[i]);
	pthread_sigmask(SIG_BLOCK, &set, &mask_at_start);
	for (size_t i = 0; i < CHANGED; i++) {
		struct sigaction ours = { .sa_handler = changed[i] == SIGCHLD ? SIG_DFL : SIG_IGN };

		sigaction(changed[i], &ours, &action_at_start[i]);
	}
	/* The area is a file of a kind: the server's limit is not for us. */
	getrlimit(RLIMIT_FSIZE, &file_at_start);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ file_at_start.rlim_max, file_at_start.rlim_max });
	m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return m->signal_fd < 0 ? -errno : 0;
}

/* The terminal sends to all of the job: what it sent, the server has got. */
static void signal_pass(struct monitor *m, const struct signalfd_siginfo *s)
{
	if (s->ssi_code == SI_KERNEL || m->server_ended || (pid_t)s->ssi_pid == m->server)
		return;
	kill(m->server, (int)s->ssi_signo);
}

static void serve_signals(struct monitor *m)
{
	struct signalfd_siginfo s;

	while (read(m->signal_fd, &s, sizeof(s)) == sizeof(s))
		if (s.ssi_signo != SIGCHLD)
			signal_pass(m, &s);
	serve_child_events(m);
}

/* --- the end -------------------------------------------------------------------------- */

static pid_t left_over_now(const struct monitor *m)
{
	uint32_t high = m->area->slots_high < AREA_THREADS ? m->area->slots_high : AREA_THREADS;

	for (uint32_t i = 0; i < high; i++) {
		const struct slot *s = &m->area->slot[i];
		pid_t pid = s->pid;

		if (s->owner && pid > 0 && pid != m->server && process_began(pid))
			return pid;
	}
	return 0;
}

/*
 * A process of the session that still lives, other than the server; or 0.  One
 * that has been forked but has not run yet is waited for, for a while: it may
 * have been killed before it could say that it is there.
 */
static pid_t left_over(const struct monitor *m)
{
	pid_t pid = left_over_now(m);

	for (int ms = 0; !pid && m->area->births && ms < BIRTH_MS; ms++) {
		usleep(1000);
		pid = left_over_now(m);
	}
	return pid;
}

/* Whoever reads what the server wrote must not wait for us. */
static void streams_close(const struct monitor *m)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd < 3; fd++)
		if (fd != 2 || !m->trace)
			dup2(null, fd);
	if (null >= 0)
		close(null);
}

/*
 * A copy of the monitor stays with the processes that go on.  It takes the
 * robust futex over before the original ends, so nobody sees a gap.
 */
static bool stay_behind(struct monitor *m)
{
	int done[2];
	char byte;
	pid_t copy;

	if (pipe2(done, O_CLOEXEC) < 0)
		return false;
	copy = fork();
	if (copy != 0) {
		close(done[1]);
		if (copy > 0 && read(done[0], &byte, 1) < 0)
			return false;
		return false;
	}
	setsid();
	streams_close(m);
	m->background = true;
	alive_hold(m);
	m->session.monitor = getpid();
	m->session.monitor_began = process_began(getpid());
	m->session.server = left_over(m);
	m->session.server_began = process_began(m->session.server);
	session_save(&m->session);
	MUST(loop_open(m) == 0);
	wake_later(m);
	close(done[0]);
	close(done[1]);
	return true;
}

static bool session_over(struct monitor *m)
{
	if (!m->server_ended)
		return false;
	return !left_over(m);
}

/* --- the loop --------------------------------------------------------------------------- */

static void wake_serve(struct monitor *m, enum wake what)
{
	uint64_t count;

	if (what == WAKE_SIGNAL) {
		serve_signals(m);
		wake_on(m, m->signal_fd, WAKE_SIGNAL);
	} else if (what == WAKE_BELL) {
		if (read(m->bell_fd, &count, sizeof(count)) == sizeof(count))
			serve_requests(m);
		wake_on(m, m->bell_fd, WAKE_BELL);
	} else if (what == WAKE_CONTROL) {
		control_accept(m, m->control_fd);
		wake_on(m, m->control_fd, WAKE_CONTROL);
	} else if (what == WAKE_TIMER) {
		wake_later(m);
	}
}

static void loop(struct monitor *m)
{
	struct io_uring_cqe *cqe;

	while (!session_over(m) && (!m->server_ended || m->background)) {
		int result = io_uring_submit_and_wait(&m->ring, 1);

		if (result < 0 && result != -EINTR)
			return;
		while (io_uring_peek_cqe(&m->ring, &cqe) == 0) {
			enum wake what = (enum wake)io_uring_cqe_get_data64(cqe);

			io_uring_cqe_seen(&m->ring, cqe);
			wake_serve(m, what);
		}
	}
}

static void status_write(struct monitor *m)
{
	json_t *j;

	if (!m->options->status_file)
		return;
	j = status_json(m);
	if (json_dump_file(j, m->options->status_file, JSON_INDENT(1)) < 0)
		say_error("check the folder and the disk", "cannot write the status: %s: %s",
			  m->options->status_file, strerror(errno));
	json_decref(j);
}

static void session_close(struct monitor *m)
{
	status_write(m);
	audit_close(m->audit);
	trace_close(m->trace);
	session_remove(&m->session);
}

/* Ends as the server ended. */
static int status_pass(int status)
{
	struct rlimit none = { 0, 0 };

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigset_t only;
	sigemptyset(&only);
	sigaddset(&only, WTERMSIG(status));
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* --- the beginning -------------------------------------------------------------------------- */

static void command_note(struct session *s, char **argv)
{
	size_t n = 0;

	for (; *argv && n < sizeof(s->command) - 1; argv++)
		n += (size_t)snprintf(s->command + n, sizeof(s->command) - n, "%s%s", n ? " " : "",
				      *argv);
}

static int name_fail(const char *name, int result)
{
	if (result == -EEXIST)
		say_error("mve ps shows the sessions; choose another with -n",
			  "cannot begin a session: %s: the name is in use", name);
	else if (result == -EINVAL)
		say_error("up to 64 letters, digits and . _ - , not . or - first",
			  "cannot begin a session: '%s': not a name", name);
	else
		say_error("XDG_RUNTIME_DIR names the folder that sessions live in",
			  "cannot begin a session: %s: %s", name, strerror(-result));
	return result == -EEXIST || result == -EINVAL ? EXIT_USE : EXIT_SYSTEM;
}

static int session_begin(struct monitor *m)
{
	char made[SESSION_NAME_MAX + 1];
	const char *name = m->options->name;
	struct session *s = &m->session;
	int result;

	if (!name) {
		session_name_make(made, sizeof(made), m->options->argv[0]);
		name = made;
	}
	result = session_create(s, name);
	if (result)
		return name_fail(name, result);
	s->monitor = getpid();
	s->monitor_began = process_began(s->monitor);
	s->started = time(NULL);
	strcpy(s->tier, m->options->tier == TIER_PATCH ? "patch" : "trap");
	command_note(s, m->options->argv);
	m->control_fd = control_open(s);
	result = m->control_fd < 0 ? m->control_fd : session_save(s);
	if (result) {
		session_remove(s);
		return name_fail(name, result);
	}
	return 0;
}

static int system_fail(struct monitor *m, const char *what, int result)
{
	say_error("mve doctor shows what this machine lacks", "cannot begin a session: %s: %s",
		  what, strerror(-result));
	session_remove(&m->session);
	return EXIT_SYSTEM;
}

static int start_fail(struct monitor *m, const char *path, int result)
{
	bool system = result == -EPERM && m->server_ended == false;

	say_error(system ? "mve doctor shows what this machine lacks"
			 : "check the file, its rights and its interpreter",
		  "cannot start a program: %s: %s", path, strerror(-result));
	session_remove(&m->session);
	if (m->server > 0)
		waitpid(m->server, NULL, 0);
	return system ? EXIT_SYSTEM : result == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static int parts_open(struct monitor *m)
{
	int result = signals_open(m);

	if (result)
		return system_fail(m, "signals", result);
	result = area_make(m);
	if (result)
		return system_fail(m, "shared memory", result);
	result = loop_open(m);
	if (result)
		return system_fail(m, "io_uring", result);
	if (m->options->audit) {
		m->audit = audit_open();
		if (!m->audit)
			say_error("the rest works; run as root for the audit",
				  "no audit: %s", audit_why());
	}
	return 0;
}

/* Finds the program as a shell does; NULL after a message. */
static char *program_find(const char *name, int *code);

int monitor_run(const struct run_options *o)
{
	static struct monitor m;
	int code = 0, result;
	char *path = program_find(o->argv[0], &code);

	if (!path)
		return code;
	m.options = o;
	code = session_begin(&m);
	if (!code)
		code = parts_open(&m);
	if (code)
		return code;
	if (o->role == ROLE_TRACE)
		m.trace = trace_open(o->trace);
	result = server_start(&m, path);
	if (result)
		return start_fail(&m, path, result);
	m.session.server = m.server;
	m.session.server_began = process_began(m.server);
	session_save(&m.session);
	loop(&m);
	if (!session_over(&m)) {
		if (!stay_behind(&m))
			return status_pass(m.server_status);
		loop(&m);
	}
	session_close(&m);
	return m.background ? 0 : status_pass(m.server_status);
}

static int look_fail(const char *path, enum program_verdict v)
{
	say_error(program_hint(v), "cannot run: %s: %s", path, program_reason(v));
	return EXIT_CANNOT_RUN;
}

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

static char *program_find(const char *name, int *code)
{
	char *path = path_search(name);
	enum program_verdict v;

	if (!path || access(path, F_OK) < 0) {
		say_error("give its path, or check PATH", "cannot run: %s: %s", name,
			  path && errno != ENOENT ? strerror(errno) : "not found");
		*code = path && errno == EACCES ? EXIT_CANNOT_RUN : EXIT_NOT_FOUND;
		return NULL;
	}
	v = program_look(path, geteuid() == 0);
	if (v == PROGRAM_OK || v == PROGRAM_UNKNOWN)
		return path;
	*code = look_fail(path, v);
	return NULL;
}
