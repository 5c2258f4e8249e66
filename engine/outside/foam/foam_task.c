/*
 * Writing an image beside the monitor.  Its twin sleeps; what is needed to look into its processes
 * is opened by us, and when all sleep a process of its own writes it, for as long as the disk
 * takes.  Then the twin ends.  The leader has nothing to do with any of it; where it fails the
 * recording that begins there ends, and says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/foam/foam_task.h"
#include "engine/outside/log/aside.h"
#include "engine/outside/record/recorder.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/copies.h"
#include "engine/outside/rewind/rewind.h"

#define END_MS	30000		/* for what is being written, at the session's end */

static struct {
	struct foam_want want;
	struct version *v;	/* all of which sleeps; NULL: nothing is written */
	int socket;		/* of who writes; or -1 */
	bool asked, written;
	char why[FOAM_WHY];	/* it failed */
} task = { .socket = -1, .want.folder = -1 };

static void descriptor_drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void processes_drop(void)
{
	for (unsigned i = 0; i < task.want.processes; i++) {
		descriptor_drop(&task.want.of[i].memory);
		descriptor_drop(&task.want.of[i].pagemap);
	}
	task.want.processes = 0;
}

void foam_task_want(int folder, const uint64_t recording[2], uint32_t number)
{
	MUST(!task.v);
	if (task.want.folder >= 0)
		close(task.want.folder);
	processes_drop();
	task.want = (struct foam_want){ .folder = folder, .number = number };
	memcpy(task.want.recording, recording, sizeof(task.want.recording));
	task.asked = true;
	task.written = false;
	task.why[0] = 0;
}

void foam_task_reads(struct version *v, bool reads)
{
	if (!task.want.number)
		streams_follow(v->monitor, ROW_LOG, reads);
	else if (reads)
		recorder_cut(v->monitor, v->index, task.want.number);
}

bool foam_task_any(void)
{
	return task.asked;
}

bool foam_task_is(void)
{
	return task.v;
}

bool foam_task_is_of(const struct version *v)
{
	return task.v == v;
}

/* --- who writes ------------------------------------------------------------------------ */

static _Noreturn void writer_run(struct foam_want *want, int socket)
{
	char why[FOAM_WHY] = "";
	int result;
	static int *keep[2 + 2 * COPIES_MAX];
	unsigned n = 0;

	MUST(want->folder >= 0 && want->processes <= COPIES_MAX);
	keep[n++] = &socket;
	keep[n++] = &want->folder;
	for (unsigned i = 0; i < want->processes; i++) {
		keep[n++] = &want->of[i].memory;
		keep[n++] = &want->of[i].pagemap;
	}
	setsid();
	prctl(PR_SET_NAME, "mve-image");
	aside_begin();
	signal(SIGXFSZ, SIG_IGN);
	descriptors_keep(keep, n);
	result = foam_write(want);
	if (result)
		snprintf(why, sizeof(why), "%s", strerror(-result));
	send(socket, why, strlen(why) + 1, MSG_NOSIGNAL);
	_exit(result ? EXIT_NO : EXIT_OK);
}

/* What a process that is not its parent may not be allowed to open. */
static int process_open(pid_t pid, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/%s", pid, what);
	return open(name, O_RDONLY | O_CLOEXEC);
}

static int writer_begin(struct version *v)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	versions_inherit(v->monitor, true);
	pid = fork();
	if (!pid)
		writer_run(&task.want, pair[1]);
	versions_inherit(v->monitor, false);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	task.socket = pair[0];
	return 0;
}

/* --- its end --------------------------------------------------------------------------- */

/* The twin ends, and nobody has to hear of it. */
static void twin_end(struct version *v)
{
	v->state = VERSION_ENDED;
	v->comes_ms = 0;
	snprintf(v->why, sizeof(v->why), "%.100s", task.written ? "its image is written" :
		 task.why);
	rewind_end(v);
	version_end(v);
}

static void task_end(struct monitor *m, const char *why)
{
	struct version *v = task.v;

	MUST(v && v->asleep && v->index != m->leader);
	descriptor_drop(&task.socket);
	processes_drop();
	if (*why)
		foam_unlink(task.want.folder, task.want.number, true);
	descriptor_drop(&task.want.folder);
	task.written = !*why;
	snprintf(task.why, sizeof(task.why), "%s", why);
	task.v = NULL;
	twin_end(v);
	say_log("record", "%s: image %u: %s", m->session.name, task.want.number,
		*why ? why : "written");
	/* Of a later one it is the segments before that a replay begins with. */
	if (*why && !task.want.number)
		recorder_fail(m, why);
	else if (*why)
		say_error("a replay begins with another", "%s: image %u: %s", m->session.name,
			  task.want.number, why);
}

/* Whose group it was in: of the leader's process whose copy leads it now; 0: of none. */
static pid_t group_was(const struct images *words, pid_t group)
{
	for (uint32_t i = 0; i < words->moves && i < MOVES_MAX; i++)
		if (group && words->move[i].is == group)
			return words->move[i].was;
	return 0;
}

static bool process_take(struct version *v, unsigned row, const struct request *r)
{
	const struct images *words = &v->brief->images;
	struct foam_of *of = &task.want.of[row];

	MUST(row < words->moves && words->move[row].is == r->pid);
	*of = (struct foam_of){ .pid = r->pid, .point = r->args[1], .was = words->move[row].was,
				.parent = words->move[row].parent,
				.group = group_was(words, words->move[row].group),
				.memory = process_open(r->pid, "mem"),
				.pagemap = process_open(r->pid, "pagemap") };
	return of->memory >= 0 && of->pagemap >= 0;
}

static void rows_begin(const struct version *v)
{
	if (task.want.processes)
		return;
	task.want.twin = v;
	task.want.processes = v->rewind.wanted_copies;
	for (unsigned i = 0; i < task.want.processes; i++)
		task.want.of[i].memory = task.want.of[i].pagemap = -1;
}

bool foam_task_begin(struct version *v, const struct request *r)
{
	struct copy *c = copy_of(&v->rewind, r->pid);
	int result = 0;

	/* Who waits asks again now and then. */
	if (c && c->waits)
		return true;
	if (!c || task.v || task.want.folder < 0 || !r->args[1])
		return false;
	rows_begin(v);
	if (!process_take(v, (unsigned)(c - v->rewind.wanted), r))
		result = -EACCES;
	if (!copies_wait(&v->rewind, c, r) && !result)
		return true;
	task.v = v;
	if (!result)
		result = writer_begin(v);
	if (result) {
		task_end(v->monitor, strerror(-result));
		return false;
	}
	foam_task_poll(v->monitor);
	return true;
}

void foam_task_serve(struct monitor *m)
{
	char why[FOAM_WHY] = "";
	ssize_t n;

	if (task.socket < 0)
		return;
	n = recv(task.socket, why, sizeof(why) - 1, MSG_DONTWAIT);
	if (n > 0)
		task_end(m, why);
	else if (n == 0)
		task_end(m, "who writes its image was killed");
	else
		foam_task_poll(m);
}

void foam_task_lost(struct version *v)
{
	MUST(!task.v && v->asleep);
	task.v = v;
	task_end(v->monitor, "its copy does not come to sleep");
}

void foam_task_close(struct monitor *m)
{
	struct pollfd p = { .fd = task.socket, .events = POLLIN };

	if (!task.v)
		return;
	if (task.socket >= 0 && poll(&p, 1, END_MS) > 0)
		foam_task_serve(m);
	if (task.v)
		task_end(m, "it was not written in time");
}

bool foam_task_poll(struct monitor *m)
{
	return task.socket < 0 || monitor_poll(m, task.socket, POLLIN, WAKE_RECORDER, 0);
}

json_t *foam_task_json(void)
{
	return json_pack("{s:s, s:i}", "state", task.v ? "is written" : task.written ? "written" :
			 task.why[0] ? "failed" : "begins", "number", (int)task.want.number);
}
