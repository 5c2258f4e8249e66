/*
 * The life of a session: make its folder, areas and streams, start the server
 * under ptrace until its first instruction, start its followers, then sit in one
 * loop until the last process is gone.
 *
 * The server is our child, so its exit status is ours; after a takeover the new
 * leader's first process is the server.  Terminal signals reach
 * it by themselves; others that are sent to mve are passed on.  When the server
 * has ended but processes of it go on (a daemon), mve returns to its caller as
 * the server did, and a copy of the monitor stays with them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/attach/attach.h"
#include "engine/outside/control/control.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/hang.h"
#include "engine/outside/late/join.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/kernel/folder.h"
#include "engine/outside/record/recorder.h"
#include "engine/outside/spill/spill.h"
#include "engine/outside/pack/used.h"
#include "engine/outside/log/stand.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/ship/ship.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/session/outlet.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/session/reach.h"
#include "engine/outside/patch/beside.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/status.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/trace.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/patch/mapped.h"
#include "engine/outside/report/findings.h"
#include "engine/outside/rollback/rollbacks.h"
#include "engine/outside/report/report.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/start/start.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"

#define DEAF_MS		1	/* between looks at who asks, while a bell is not heard */
#define CLOSE_AGAIN_MS	100	/* where nobody may wait for it now */
#define START_MS	2000	/* how long an execve may take */
#define SIZE_HINT	"the limit of the file size is too small for mve (ulimit -f)"
#define BIRTH_MS	500	/* how long a forked process may take to begin */

/* --- the loop's sources ------------------------------------------------------------ */

/* The parts that a copy of the monitor needs anew: what wakes it, and bell threads. */
static int loop_open(struct monitor *m)
{
	int result = wakes_open(m);

	if (result < 0)
		return result;
	MUST(m->versions && m->versions <= VERSIONS);
	m->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->bell_fd < 0)
		return -errno;
	ahead_open();
	for (unsigned i = 0; i < m->versions; i++) {
		result = version_bell_start(&m->version[i]);
		if (result)
			return result;
	}
	if (!monitor_poll(m, m->signal_fd, POLLIN, WAKE_SIGNAL, 0) ||
	    !monitor_poll(m, m->bell_fd, POLLIN, WAKE_BELL, 0) || !control_begin(m) ||
	    !recorder_poll(m) || !spill_poll(m) || !ship_poll(m))
		return -errno;
	return 0;
}

/* --- signals ------------------------------------------------------------------------ */

static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM,
				 SIGWINCH, SIGCONT };
#define PASSED_ON (sizeof(passed_on) / sizeof(passed_on[0]))

/* Ours are other than the server's; it gets these back. */
static void actions_keep(struct start_keep *keep)
{
	static const int changed[] = { SIGPIPE, SIGCHLD };

	_Static_assert(sizeof(changed) / sizeof(changed[0]) < KEEP_ACTIONS, "they fit");
	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
		struct sigaction ours = { .sa_handler = changed[i] == SIGCHLD ? SIG_DFL : SIG_IGN };

		keep->sig[i] = changed[i];
		sigaction(changed[i], &ours, &keep->action[i]);
		keep->actions++;
	}
}

static int signals_open(struct monitor *m)
{
	struct start_keep keep = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < PASSED_ON; i++)
		sigaddset(&set, passed_on[i]);
	pthread_sigmask(SIG_BLOCK, &set, &keep.mask);
	actions_keep(&keep);
	start_keep_set(&keep);
	m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return m->signal_fd < 0 ? -errno : 0;
}

/* Of a server that was there before us: it is left, and goes on. */
static bool is_end(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
}

static void detach_said(struct monitor *m)
{
	struct attach_done done;

	if (!detach(m, &done))
		say_error(done.hint, "cannot detach: %s: %s", m->session.name, done.why);
}

/*
 * The terminal sends to all of the job: what it sent, the server has got, unless
 * it was a follower once.
 */
static void signal_pass(struct monitor *m, const struct signalfd_siginfo *s)
{
	const struct version *v = leading(m);
	pid_t head = version_head(v);

	if (m->options->attach && is_end((int)s->ssi_signo)) {
		detach_said(m);
		return;
	}
	MUST(head >= 0 && head != getpid());	/* kill(0) is to ourselves as well */

	if (!head || (pid_t)s->ssi_pid == head)
		return;
	if (s->ssi_code != SI_KERNEL || v->options)
		kill(head, (int)s->ssi_signo);
}

static void serve_signals(struct monitor *m)
{
	struct signalfd_siginfo s;

	while (read(m->signal_fd, &s, sizeof(s)) == sizeof(s))
		if (s.ssi_signo != SIGCHLD)
			signal_pass(m, &s);
	exec_children(m);
}

/* --- the end -------------------------------------------------------------------------- */

/*
 * A process of the leading version still lives.  One that has been forked but has not
 * run yet is waited for, for a while: it may have been killed before it could say that
 * it is there.
 */
static bool left_over(struct monitor *m)
{
	const struct version *v = leading(m);

	for (int ms = 0; !version_head(v) && version_births(v) && ms < BIRTH_MS; ms++)
		usleep(1000);
	return version_head(v);
}

/* Whoever reads what the server wrote must not wait for us. */
static void streams_close(const struct monitor *m)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* A server goes on: what is said of it is kept. */
	int words = m->trace ? -1 : report_log(m->session.name);

	for (int fd = 0; null >= 0 && fd < 3; fd++)
		if (fd != 2 || !m->trace)
			dup2(fd == 2 && words >= 0 ? words : null, fd);
	if (words >= 0)
		close(words);
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

	MUST(!m->background);

	if (pipe2(done, O_CLOEXEC) < 0)
		return false;
	exec_go_on(m, true);
	versions_inherit(m, true);
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
	memset(m->tracees, 0, sizeof(m->tracees));	/* the original's */
	beside_forget();
	reach_begin();
	mapped_forget();
	held_again(m, REQ_MAPPED);
	held_again(m, REQ_SITE_HOT);
	held_again(m, REQ_EXEC);
	versions_inherit(m, false);
	versions_alive_hold(m, 0);
	m->session.monitor = getpid();
	m->session.monitor_began = process_began(getpid());
	session_note(m);
	MUST(loop_open(m) == 0);
	trace_stay(m);
	wakes_look(m);
	close(done[0]);
	close(done[1]);
	return true;
}

static bool session_over(struct monitor *m)
{
	MUST(m->leader < m->versions);
	return m->detached || (leading(m)->gone && !takeover_wanted(m) && !left_over(m) &&
			       followers_finish(m));
}

/*
 * The server has ended, and others go on without it.  Programs that are just
 * being started are waited for: a copy of the monitor could not see them through.
 */
static bool server_over(struct monitor *m)
{
	uint64_t now = now_ms();

	if (!leading(m)->gone || takeover_wanted(m) || m->finishing)
		return false;
	if (!m->over_ms)
		m->over_ms = now;
	if (!exec_any(m) || now >= m->over_ms + START_MS)
		return true;
	monitor_wake_after(m, (unsigned)(m->over_ms + START_MS - now));
	return false;
}

/* --- the loop ------------------------------------------------------------------------- */

static void wake_serve(struct monitor *m, enum wake what, uint64_t which)
{
	uint64_t count;

	MUST(what >= WAKE_SIGNAL && what <= WAKE_LOOK);

	if (what == WAKE_SIGNAL) {
		serve_signals(m);
		monitor_poll(m, m->signal_fd, POLLIN, WAKE_SIGNAL, 0);
	} else if (what == WAKE_BELL) {
		if (read(m->bell_fd, &count, sizeof(count)) == sizeof(count))
			serve_requests(m);
		/* A leader has crashed, and clients wait: before all else. */
		if (takeover_wanted(m))
			takeover_look(m);
		monitor_poll(m, m->bell_fd, POLLIN, WAKE_BELL, 0);
	} else if (what == WAKE_CONTROL) {
		control_accept(m);
	} else if (what == WAKE_LINK) {
		control_go_on(m, which);
	} else if (what == WAKE_TRACE) {
		trace_go_on(m);
	} else if (what == WAKE_RECORDER) {
		recorder_serve(m);
	} else if (what == WAKE_SPILLER) {
		spill_serve(m);
	} else if (what == WAKE_SHIP) {
		ship_serve(m);
	} else if (what == WAKE_LOOK) {
		/* One that followed when the original ended is no child of the copy. */
		if (m->background && process_began(leading(m)->server) != leading(m)->began)
			leading(m)->gone = true;
		if (session_look(m))
			session_note(m);
		if (m->conduct)
			followers_look(m);
		if (m->options->replay)
			stand_say(m);
		ship_look(m);
		if (m->background || m->options->sampling.stateless || m->options->record ||
		    followers_any(m))
			wakes_look(m);
	}
}

/* What is due now, whatever woke us. */
static void due_serve(struct monitor *m)
{
	if (beside_look(m))
		exec_beside(m);
	mapped_look(m);
	if (m->asked_soon || ahead_is_deaf()) {
		m->asked_soon = false;
		serve_requests(m);
	}
	if (ahead_is_deaf())
		monitor_wake_after(m, DEAF_MS);
	control_look(m);
	stages_look(m);
	/* What a takeover has left, when it is over. */
	if (!takeover_any(m) && descriptors_look())
		monitor_wake_after(m, CLOSE_AGAIN_MS);
	if (!m->conduct)
		return;
	late_look(m);
	exec_look(m);
	hang_look(m);
	rewind_look(m);
	takeover_look(m);
	held_look(m);
	findings_look(m);
	followers_judge(m);
}

/* True: the session is over.  Asked here alone: that ends followers, or gives them time anew. */
static bool loop(struct monitor *m)
{
	for (;;) {
		if (session_over(m))
			return true;
		if (!m->background && server_over(m))
			return false;
		if (!wakes_wait(m, wake_serve))
			return false;
		due_serve(m);
	}
}

static void status_write(struct monitor *m)
{
	const char *path = m->options->status_file;
	json_t *j = path ? status_json(m) : NULL;
	char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
	int result = text ? outlet_file(path, text, strlen(text)) : -ENOMEM;

	if (path && result)
		say_error(result == -ENXIO || result == -EAGAIN ? "nobody reads it"
							       : "check the folder and the disk",
			  "cannot write the status: %s: %s", path, strerror(-result));
	free(text);
	json_decref(j);
}

/* Where there is none, a version's processes are those that have its area. */
static void cgroup_begin(struct monitor *m)
{
	char own[PATH_MAX] = "";

	m->cgroup = -1;
	m->cgroup_own = options_company(m->options) ? cgroup_own(own, sizeof(own)) : -1;
	if (m->cgroup_own >= 0)
		m->cgroup = cgroup_make(m->cgroup_own, m->session.name);
	if (m->cgroup >= 0)
		cgroup_path(m->cgroup_path, sizeof(m->cgroup_path), own, m->session.name);
	else if (options_company(m->options))
		say_log("cgroup", "%s: none for the session: %s", m->session.name,
			strerror(m->cgroup_own < 0 ? -m->cgroup_own : -m->cgroup));
}

static void cgroup_end(struct monitor *m)
{
	if (m->cgroup >= 0)
		cgroup_remove(m->cgroup_own, m->session.name);
}

static void session_close(struct monitor *m)
{
	rewind_over(m);
	findings_close(m);
	rollbacks_close(m);
	recorder_end(m);
	spill_end(m);
	ship_end(m);
	status_write(m);
	audit_close(m->audit);
	cgroup_end(m);
	session_remove(&m->session);
	trace_close(m->trace, m->signal_fd);
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

/* --- the beginning -------------------------------------------------------------------- */

static int name_fail(const char *name, int result)
{
	if (result == -EEXIST)
		say_error("mve ps shows the sessions; choose another with -n",
			  "cannot begin a session: %s: the name is in use", name);
	else if (result == -EINVAL)
		say_error("up to 64 letters, digits and . _ - , not . or - first",
			  "cannot begin a session: '%s': not a name", name);
	else
		say_error(result == -EFBIG ? SIZE_HINT :
			  "XDG_RUNTIME_DIR names the folder that sessions live in",
			  "cannot begin a session: %s: %s", name,
			  folder_why(-result));
	return result == -EEXIST || result == -EINVAL ? EXIT_USE : EXIT_SYSTEM;
}

static int session_begin(struct monitor *m)
{
	char made[SESSION_NAME_MAX + 1];
	const char *name = m->options->name;
	struct session *s = &m->session;
	int result;

	MUST(m->options->argv && m->options->argv[0]);

	if (!process_began(getpid())) {
		say_error("mount it: mount -t proc proc /proc",
			  "cannot begin a session: /proc: it is not there");
		return EXIT_SYSTEM;
	}
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
	session_command(s, m->options->argv);
	m->control_fd = control_open(s);
	result = m->control_fd < 0 ? m->control_fd : session_save(s);
	if (result) {
		session_remove(s);
		return name_fail(name, result);
	}
	return 0;
}

static const char *system_hint(int result)
{
	if (result == -EFBIG)
		return SIZE_HINT;
	if (result == -EMFILE)
		return "raise the limit of open files (ulimit -n)";
	if (result == -ENOMEM)
		return "free memory, raise ulimit -v, or take a smaller --ring";
	return "mve doctor shows what this machine lacks";
}

static int system_fail(struct monitor *m, const char *what, int result)
{
	say_error(system_hint(result),
		  "cannot begin a session: %s: %s", what, strerror(-result));
	cgroup_end(m);
	/* Where descriptors were what was missing, the removal has room by these. */
	close(m->control_fd);
	close(m->signal_fd);
	session_remove(&m->session);
	return EXIT_SYSTEM;
}

static int start_fail(struct monitor *m, const char *path, int result)
{
	bool system = result == -EMFILE || (result == -EPERM && !leading(m)->gone);

	say_error(system ? system_hint(result)
			 : "check the file, its rights and its interpreter",
		  "cannot start a program: %s: %s", path,
		  result == -ENOENT && access(path, F_OK) == 0 ? "its interpreter is not found"
							       : strerror(-result));
	cgroup_end(m);
	session_remove(&m->session);
	if (leading(m)->server > 0)
		waitpid(leading(m)->server, NULL, 0);
	return system ? EXIT_SYSTEM : result == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

#define FILES_SPARE	16	/* descriptors that a session opens as it goes: at the least */
#define FILES_VERSION	2	/* and of each version */

/* A monitor that has none left cannot look at a request, and its server would wait for it. */
static int files_check(const struct monitor *m)
{
	rlim_t versions = m->options->followers + m->options->spares + 1;
	rlim_t wanted = FILES_SPARE + FILES_VERSION * versions;
	int next = fcntl(m->signal_fd, F_DUPFD_CLOEXEC, 0);
	struct rlimit most;

	if (next < 0 || getrlimit(RLIMIT_NOFILE, &most))
		return -errno;
	close(next);
	return (rlim_t)next + wanted <= most.rlim_cur ? 0 : -EMFILE;
}

static int parts_open(struct monitor *m)
{
	int result = signals_open(m);

	cgroup_begin(m);
	if (result)
		return system_fail(m, "signals", result);
	result = versions_make(m);
	if (!result && options_company(m->options)) {
		spill_choose(m);
		result = streams_make(m);
	}
	if (result)
		return system_fail(m, "shared memory", result);
	result = loop_open(m);
	if (result)
		return system_fail(m, "the monitor's loop", result);
	result = files_check(m);
	if (result)
		return system_fail(m, "its descriptors", result);
	if (m->options->audit) {
		m->audit = audit_open();
		if (!m->audit)
			say_error("the rest works; run as root for the audit",
				  "no audit: %s", audit_why());
	}
	return 0;
}

/* The leader stands at its first instruction; or it is a recording. */
static int leader_start(struct monitor *m)
{
	struct version *v = &m->version[0];
	int result;

	MUST(v->state == VERSION_STARTING && !m->leader);
	if (m->options->replay)
		return replay_begin(m);
	result = version_start(v);
	if (!result)
		result = version_first_exec(v);
	if (result)
		return result;
	v->state = VERSION_LEADS;
	recorder_begin(m);
	spill_begin(m);
	ship_begin(m);
	return 0;
}

static int versions_start(struct monitor *m)
{
	struct version *v = &m->version[0];
	int result = leader_start(m);

	if (result)
		return start_fail(m, v->path, result);
	m->session.server = v->server;
	m->session.server_began = process_began(v->server);
	session_note(m);
	if (m->conduct) {
		followers_start(m);
		wakes_look(m);
	}
	return 0;
}

/* The server is nobody's child of ours: as for a copy of the monitor, which looks at /proc. */
static int attach_begin(struct monitor *m)
{
	int code;

	m->background = true;
	if (m->options->audit && m->audit)
		audit_add(m->audit, m->options->attach, NULL);
	code = attach_start(m);
	if (code)
		session_close(m);
	else
		wakes_look(m);
	return code;
}

/*
 * Versions may run as the same user: our memory and descriptors are not theirs to open
 * through /proc.
 */
static void monitor_close(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void monitor_open_child(void)
{
	if (geteuid())
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static struct monitor *ours;

/* Our end is not the server's: the inside serves it without us. */
static void bug_words(char *text, size_t size)
{
	const struct version *v = leading(ours);

	snprintf(text, size, "the monitor of %s ends; %s goes on serving as pid %d, without %s; "
		 "its lane 0 stood at %lu", ours->session.name, v->name,
		 v->server, ours->conduct ? "followers" : "a monitor",
		 ours->conduct ? __atomic_load_n(&lane_at(ours, ours->leader, 0)->head,
						 __ATOMIC_RELAXED) : 0);
}

int monitor_run(const struct run_options *o)
{
	static struct monitor m;
	int code;

	ours = &m;
	m.options = o;
	monitor_close();
	code = programs_find(&m);
	if (!code)
		code = session_begin(&m);
	if (!code && ((code = recorder_open(&m)) || (code = spill_open(&m)) ||
		      (code = ship_open(&m))))
		session_remove(&m.session);
	if (!code)
		code = parts_open(&m);
	if (code)
		return code;
	if (o->role == ROLE_TRACE)
		m.trace = trace_open(o->trace_fd);
	code = o->attach ? attach_begin(&m) : versions_start(&m);
	if (code)
		return code;
	say_never_waits();
	say_of_bugs(bug_words);
	beside_begin();
	reach_begin();
	if (!loop(&m)) {
		if (!stay_behind(&m))
			return status_pass(leading(&m)->status);
		loop(&m);
	}
	session_close(&m);
	used_write(&m);
	if (o->replay)
		return replay_result(&m);
	return o->attach ? attach_result(&m) : m.background ? 0 : status_pass(leading(&m)->status);
}
