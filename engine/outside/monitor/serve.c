/*
 * What the inside asks of the monitor, and programs on their way through
 * execve.  What is read of who asks is read of the thread, since a process whose
 * first thread has ended has no memory, root or folder by its own id.  A program is
 * seized when its execve begins and let go as soon as it stands ready at its first
 * instruction; no ptrace is in play otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/query.h"
#include "engine/outside/follow/runtime.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/remote.h"
#include "engine/outside/kernel/witness.h"
#include "engine/outside/monitor/asker.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/trace.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/patch/hook.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/report/findings.h"
#include "engine/outside/start/inject.h"
#include "engine/outside/start/program.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"

static struct tracee *tracee_find(struct monitor *m, pid_t tid)
{
	for (int i = 0; i < TRACEES_MAX; i++)
		if (m->tracees[i].tid == tid)
			return &m->tracees[i];
	return NULL;
}

/* Programs are on their way through execve: they are ours to see through. */
bool serve_execs(const struct monitor *m)
{
	for (int i = 0; i < TRACEES_MAX; i++)
		if (m->tracees[i].tid)
			return true;
	return false;
}

/*
 * Seizes a thread that is about to call execve; 0 or a negative errno.  Without
 * us the server goes on unheld; a follower must not, since it would act.
 */
int serve_seize(struct version *v, pid_t tid, const struct tracee *want)
{
	struct tracee *free_row = tracee_find(v->monitor, 0);
	long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;

	if (!free_row)
		return -EAGAIN;
	if (want->role == ROLE_FOLLOWER)
		options |= PTRACE_O_EXITKILL;
	if (ptrace(PTRACE_SEIZE, tid, 0, options) < 0)
		return -errno;
	*free_row = *want;
	free_row->tid = tid;
	return 0;
}

/* --- execve ------------------------------------------------------------------ */

static int path_read(pid_t pid, uint64_t at, char *path, size_t size)
{
	struct iovec here = { path, size - 1 }, there = { (void *)at, size - 1 };
	ssize_t n;

	/* Up to the end of the page first: the next one may not be there. */
	there.iov_len = here.iov_len = size - 1 < 4096 - at % 4096 ? size - 1 : 4096 - at % 4096;
	n = process_vm_readv(pid, &here, 1, &there, 1, 0);
	if (n < 0)
		return -errno;
	path[n] = 0;
	if (strlen(path) < (size_t)n || here.iov_len == size - 1)
		return 0;
	here = (struct iovec){ path + n, size - 1 - (size_t)n };
	there = (struct iovec){ (void *)(at + (uint64_t)n), here.iov_len };
	n = process_vm_readv(pid, &here, 1, &there, 1, 0);
	if (n > 0)
		((char *)here.iov_base)[n] = 0;
	return 0;
}

/* The program's path as we can open it. */
static int path_seen(pid_t tid, const struct request *r, char *out, size_t size)
{
	char path[3000];
	int dir = (int)r->args[1], n;

	if (path_read(tid, r->args[0], path, sizeof(path)))
		return -EFAULT;
	if (path[0] == '/')
		n = snprintf(out, size, "/proc/%d/root%s", tid, path);
	else if (dir == AT_FDCWD)
		n = snprintf(out, size, "/proc/%d/cwd/%s", tid, path);
	else if (!path[0])
		n = snprintf(out, size, "/proc/%d/fd/%d", tid, dir);
	else
		n = snprintf(out, size, "/proc/%d/fd/%d/%s", tid, dir, path);
	return (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* In another root a path may be there though we do not find it. */
static bool same_root(pid_t pid)
{
	char root[64];
	struct stat ours, theirs;

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	return !stat("/", &ours) && !stat(root, &theirs) && ours.st_ino == theirs.st_ino &&
	       ours.st_dev == theirs.st_dev;
}

/*
 * A seccomp filter of the program's own outlives execve, and would meet the
 * calls by which a new program is readied: such a program runs unheld.
 */
static bool is_filtered(const struct version *v, pid_t pid)
{
	char name[64], line[256];
	bool filtered = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	f = v->area->filters ? fopen(name, "re") : NULL;
	while (f && fgets(line, sizeof(line), f))
		filtered |= !strncmp(line, "Seccomp:\t", 9) && line[9] != '0';
	if (f)
		fclose(f);
	return filtered;
}

enum role serve_role(const struct version *v, bool follows)
{
	const struct monitor *m = v->monitor;

	if (!m->conduct)
		return m->options->role;
	/* No thread of a leader follows but while it takes over: who says so lies. */
	return follows && (v->index != m->leader || m->move.active) ? ROLE_FOLLOWER : ROLE_LEADER;
}

/* Seizes the thread; what it is now goes on in the new program. */
static bool exec_seize(struct version *v, const struct request *r)
{
	struct tracee want = { .hidden = (uint32_t)r->args[2], .version = v,
			       .role = serve_role(v, r->args[2] & HIDDEN_FOLLOWS),
			       .lane = (uint32_t)(r->args[5] < LANES_ALL ? r->args[5] : LANES_ALL),
			       .vpid = v->area->slot[r->slot].vpid };
	struct layout like;

	if (want.role == ROLE_FOLLOWER) {
		memcpy(&like, r->call, sizeof(like));
		want.wish = layout_wish(r->pid, &like);
	}

	return !is_filtered(v, r->tid) && serve_seize(v, r->tid, &want) == 0;
}

static int64_t exec_32bit(struct version *v, const char *path)
{
	if (v->index == v->monitor->leader && version_may_say(v))
		say_error(program_hint(PROGRAM_32BIT), "cannot hold a program: %s: %s",
			  path + strcspn(path + 1, "/") + 1, program_reason(PROGRAM_32BIT));
	return -ENOEXEC;
}

/*
 * Followers would be told of a program by a process of other rights: of one that has some
 * by its file, or of a process that has changed its own where it could not move.
 */
static bool exec_moves(const struct version *v, const struct request *r, const char *path)
{
	const struct monitor *m = v->monitor;

	return m->conduct && !options_joinable(m->options) && lane_is(m, r->args[5]) &&
	       !(r->args[2] & HIDDEN_FOLLOWS) &&
	       (!realm_fits(m, (uint32_t)r->args[5] / LANES, r->tid) || realm_changes(path, r->tid));
}

/* enum exec_go; negative: the execve fails so. */
static int64_t exec_serve(struct version *v, const struct request *r)
{
	enum program_verdict verdict = PROGRAM_UNKNOWN;
	char path[4096];

	if (!path_seen(r->tid, r, path, sizeof(path)))
		verdict = program_look(path, geteuid() == 0);
	if (verdict == PROGRAM_32BIT)
		return exec_32bit(v, path);
	if (verdict == PROGRAM_UNKNOWN && same_root(r->tid) && access(path, F_OK) < 0 &&
	    errno == ENOENT)
		return EXEC_GO_FAILS;
	if (!exec_moves(v, r, path) && verdict != PROGRAM_PRIVILEGED && exec_seize(v, r))
		return EXEC_GO;
	v->unheld++;
	say_log("exec", "%d: runs unheld: %s: %s", r->pid, path, program_reason(verdict));
	return EXEC_GO_UNHELD;
}

/* The execve failed: the thread must stop to be let go. */
static void exec_failed(struct monitor *m, pid_t tid)
{
	if (tracee_find(m, tid))
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
}

static void audit_image(const struct version *v, pid_t pid, uint64_t base)
{
	struct audit_ranges r;

	if (!v->monitor->audit || v->options)
		return;
	witness_ranges(base, &r);
	audit_set_image(v->monitor->audit, pid, &r);
}

static struct inject_want want_of(struct version *v, const struct tracee *t)
{
	struct monitor *m = v->monitor;
	struct inject_want w = { .area_fd = v->area_fd, .brief_fd = v->brief_fd, .key = v->key,
				 .tier = (enum tier)m->options->tier, .image = v->images,
				 .row = &v->image[v->images % AREA_IMAGES],
				 .hidden = t->hidden, .role = t->role, .version = v->index,
				 .lane = t->lane % LANES, .realm = t->lane / LANES,
				 .vpid = t->vpid, .wish = &t->wish };
	const struct realm *realm = &m->realm[w.realm];

	if (!m->conduct || !lane_is(m, t->lane))	/* a sanitizer's own program: on its own */
		return w;
	w.chunks = m->conduct->chunks;
	w.versions = m->conduct->sections;
	w.seam = m->options->seam_function;
	w.runtime = &v->runtime;
	w.puts_off = &m->conduct->puts_off;
	w.conduct_fd = m->conduct_fd;
	for (uint32_t i = 0; i < w.versions; i++)
		w.section_fd[i] = i == v->index ? realm->section_fd[i] : realm->section_read_fd[i];
	w.random[0] = streams_seed(v, t->lane, 0);
	w.random[1] = streams_seed(v, t->lane, 1);
	v->execs[t->lane % LANES_ALL]++;
	return w;
}

/* What is not held goes on without us; a follower must not: it would act. */
static void program_lost(struct version *v, pid_t pid, enum role role, int result)
{
	v->unheld++;
	if (role == ROLE_FOLLOWER) {
		kill(pid, SIGKILL);
		ptrace(PTRACE_DETACH, pid, 0, SIGKILL);
		follower_drop(v, VERDICT_UNSUPPORTED, "cannot hold a program: %s",
			      strerror(-result));
		return;
	}
	if (version_may_say(v))
		say_error("mve doctor shows what this machine lacks",
			  "cannot hold a program: pid %d: %s", pid, strerror(-result));
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

/*
 * Its rights are those of the realm whose sections it is about to get.  If not, the file
 * has changed since its execve was looked at, or who asked has said that it was elsewhere:
 * no follower is told of it as of the process that it was.
 */
static int realm_look(struct version *v, const struct tracee *t, pid_t pid)
{
	struct monitor *m = v->monitor;

	if (!v->index && !v->images)
		realm_first(m, pid);
	if (options_joinable(m->options) || realm_fits(m, t->lane / LANES, pid))
		return 0;
	for (unsigned i = 0; i < m->versions && v->index == m->leader; i++)
		follower_drop(&m->version[i], VERDICT_UNSUPPORTED,
			      "the leader's pid %d has become a program of other rights", pid);
	return -EPERM;
}

static void program_begin(struct version *v, pid_t pid, const struct tracee *t)
{
	struct inject_want want = want_of(v, t);
	struct layout layout;
	int result = v->state == VERSION_ENDED ? -ECANCELED : 0;

	if (!result && want.chunks)
		result = realm_look(v, t, pid);
	if (!result)
		result = inject(pid, &want, &layout);

	if (result) {
		program_lost(v, pid, want.role, result);
		return;
	}
	if (!v->images && want.role == ROLE_LEADER)
		v->monitor->layout = layout;
	audit_image(v, pid, want.row->inside);
	v->images++;
	if (v->state == VERSION_STARTING && v->index != v->monitor->leader) {
		v->state = VERSION_FOLLOWS;
		v->follows_ms = now_ms();
	}
	if (v->monitor->conduct)	/* now is the time: a takeover is in a hurry */
		version_owns(v, pid, pid);
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* A thread other than the first may have called execve: its row is its old id. */
static struct tracee tracee_drop(struct monitor *m, pid_t pid)
{
	unsigned long before = 0;
	struct tracee *row, was;

	ptrace(PTRACE_GETEVENTMSG, pid, 0, &before);
	row = before ? tracee_find(m, (pid_t)before) : NULL;
	if (!row)
		row = tracee_find(m, pid);
	if (!row)
		return (struct tracee){ 0 };
	was = *row;
	*row = (struct tracee){ 0 };
	return was;
}

static void tracee_stopped(struct monitor *m, pid_t pid, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);
	struct tracee t;

	if (event == PTRACE_EVENT_EXEC) {
		t = tracee_drop(m, pid);
		MUST(t.version);
		program_begin(t.version, pid, &t);
	} else if (event == PTRACE_EVENT_STOP && sig == SIGTRAP) {
		tracee_drop(m, pid);
		ptrace(PTRACE_DETACH, pid, 0, 0);
	} else if (event == PTRACE_EVENT_STOP) {
		ptrace(PTRACE_LISTEN, pid, 0, 0);
	} else {
		ptrace(PTRACE_CONT, pid, 0, sig);
	}
}

static void first_ended(struct monitor *m, pid_t pid, int status)
{
	struct version *v = version_of_child(m, pid);

	if (!v)
		return;
	v->status = status;
	v->reaped = v->gone = true;
	if (v->index != m->leader)
		follower_ended(v);
	else if (m->move.active)	/* before it had taken everything */
		takeover_want(v, "ended while it took over", true);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && followers_any(m))
		say_error(NULL, "%s: %s was killed, and its connections with it: nothing is left "
			  "to take over", m->session.name, v->name);
}

/* Collects what SIGCHLD announced. */
void serve_child_events(struct monitor *m)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (WIFSTOPPED(status)) {
			tracee_stopped(m, pid, status);
			continue;
		}
		if (tracee_find(m, pid))
			*tracee_find(m, pid) = (struct tracee){ 0 };
		first_ended(m, pid, status);
	}
}

/* Of it the stops alone: a takeover has begun, and whose end has come is looked at later. */
void serve_stops(struct monitor *m)
{
	siginfo_t info = { 0 };

	while (!waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | __WALL) && info.si_pid) {
		tracee_stopped(m, info.si_pid, W_STOPCODE(info.si_status));
		info.si_pid = 0;
	}
}

/* --- new code ------------------------------------------------------------------ */

static void sum_add(struct version *v, uint64_t image, const struct patch_sum *sum)
{
	struct image *row = &v->image[image % AREA_IMAGES];

	row->sites_patched += sum->patched;
	row->sites_trapped += sum->trapped;
}

/* An allocator's locks and clocks are about addresses, which twins do not share. */
static bool is_allocator(const char *path)
{
	static const char *const names[] = { "libjemalloc", "libtcmalloc", "libmimalloc" };
	const char *base = strrchr(path, '/');

	for (size_t i = 0; base && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(base + 1, names[i], strlen(names[i])))
			return true;
	return false;
}

/* What its calls mean, and how stacks are walked through it. */
static uint64_t library_look(struct mapped_answer *a, pid_t pid, const struct map *m)
{
	uint64_t bits = is_allocator(m->path) ? MAPPED_LOCAL : 0;

	if (runtime_is_library(m->path))
		bits = MAPPED_RUNTIME;
	else if (runtime_is_libc(m->path))
		bits = MAPPED_LIBC;
	if (bits & (MAPPED_RUNTIME | MAPPED_LIBC))
		a->unwind = runtime_unwind(pid, m);
	a->sigaction = bits & MAPPED_RUNTIME ? runtime_sigaction(pid, m) : 0;
	return bits;
}

/* Patches what a process has just mapped; the boards' new cursor or -errno. */
static int64_t mapped_serve(struct version *v, const struct request *r)
{
	struct mapped_answer answer = { .guards = 0 };
	struct board_room room = { r->args[3], LIBRARY_BOARDS, r->args[2] };
	uint64_t start = r->args[0], end = start + r->args[1], bits = 0;
	struct patch_sum sum = { .twins = v->monitor->conduct };
	struct maps maps;
	int memory = memory_open(r->tid);

	if (memory < 0)
		return memory;
	if (room.used <= room.len && !maps_read_part(r->tid, start, end, &maps)) {
		for (size_t i = 0; i < maps.n; i++) {
			const struct map *m = &maps.map[i];

			if (!m->exec || m->start >= end || m->end <= start)
				continue;
			if (v->monitor->options->tier == TIER_PATCH)
				patch_map(r->tid, memory, m, &room, &sum);
			if (!v->monitor->conduct)
				continue;
			hook_map(r->tid, memory, m, HOOK_LIBRARY, &room);
			bits |= library_look(&answer, r->tid, m);
			v->runtime |= (bits & MAPPED_RUNTIME) != 0;
			if (answer.sigaction)
				v->monitor->conduct->puts_off |= 1u << v->index;
		}
		maps_free(&maps);
	}
	sum_add(v, r->args[4], &sum);
	answer.guards = sum.guards;
	memcpy(answer.guard, sum.guard, sizeof(answer.guard));
	if (asker_give(r, r->call[0], &answer, sizeof(answer)))
		bits |= MAPPED_UNCLEAN;
	close(memory);
	bits |= sum.unclean || sum.vsyscall ? MAPPED_UNCLEAN : 0;
	return (int64_t)(room.used | bits);
}

/* A site that proved hot is patched; the room that its board took. */
static int64_t hot_serve(struct version *v, const struct request *r)
{
	struct board_room room = { r->args[1], r->args[2] >> 32, (uint32_t)r->args[2] };
	struct patch_sum sum = { .patched = 1 };
	int memory = memory_open(r->tid), result;

	if (memory < 0)
		return memory;
	result = room.used <= room.len ? patch_site(r->tid, memory, r->args[0], &room) : -EINVAL;
	close(memory);
	if (result)
		return result;
	sum_add(v, r->args[4], &sum);
	v->image[r->args[4] % AREA_IMAGES].sites_trapped--;
	return (int64_t)room.used;
}

/* --- words ----------------------------------------------------------------------- */

#define WORDS_MAX	64	/* at one time */
#define WORD_MS		10000	/* and one more each */

bool version_may_say(struct version *v)
{
	uint64_t now = now_ms(), over = (now - v->words_ms) / WORD_MS;

	if (over) {
		v->words -= over < v->words ? (unsigned)over : v->words;
		v->words_ms = now;
	}
	if (v->words > WORDS_MAX)
		return false;
	if (v->words++ == WORDS_MAX)
		say_error(NULL, "%s/%s: says too much: more of it is not shown for a while",
			  v->monitor->session.name, v->name);
	return v->words <= WORDS_MAX;
}

static void refused_say(struct version *v, const struct request *r)
{
	static const char *const what[][2] = {
		[REFUSED_INT80] = { "a 32-bit system call (int 0x80) was refused",
				    "the program sees ENOSYS; use its 64-bit interface" },
		[REFUSED_GS] = { "setting the GS base was refused", "mve keeps its state there" },
		[REFUSED_IO_URING] = { "io_uring was refused",
				       "the program sees ENOSYS, as on older kernels" },
		[REFUSED_AIO] = { "io_setup was refused in a session with followers",
				  "the program sees ENOSYS, and does without" },
		[REFUSED_DISPATCH] = { "syscall user dispatch was refused", "mve stands on it" },
	};
	uint64_t n = r->args[0];

	if (n >= REFUSED_INT80 && n <= REFUSED_AIO && version_may_say(v))
		say_error(what[n][1], "%s: pid %d at 0x%lx", what[n][0], r->pid, r->args[1]);
}

static void untold_say(const struct version *v, const struct request *r)
{
	const struct call_desc *d = call_find((long)r->args[1]);

	say_error(NULL, "%s/%s: %s with request 0x%lx is not known: what the leader got by it may "
		  "be missing here", v->monitor->session.name, v->name, d ? d->name : "a call",
		  r->args[2]);
}

/* What a version could not do as its leader. */
static void note_say(const struct version *v, const struct request *r)
{
	if (r->args[0] == NOTE_TIMER)
		say_error(NULL, "%s/%s: timer %lu could not be made again: its signals will not come",
			  v->monitor->session.name, v->name, r->args[1]);
	if (r->args[0] == NOTE_UNTOLD)
		untold_say(v, r);
	if (r->args[0] == NOTE_SIGNALS)
		say_error("natively such signals wait, up to RLIMIT_SIGPENDING (ulimit -i)",
			  "%s/%s: %lu signals that came as it took over are lost",
			  v->monitor->session.name, v->name, r->args[1]);
	if (r->args[0] == NOTE_SHARED)
		say_error("a shared mapping of more than 16 MiB, or of a quarter of the ring, is a "
			  "private copy", "%s/%s: what is mapped of descriptor %lu may differ from "
			  "the leader's", v->monitor->session.name, v->name, r->args[1]);
	if (r->args[0] == NOTE_LOCK)
		say_error(NULL, r->args[2] ? "%s/%s: another process has got the record lock of "
			  "descriptor %lu" : "%s/%s: a record lock of descriptor %lu that does not "
			  "count from the file's beginning will be lost when another leads",
			  v->monitor->session.name, v->name, r->args[1]);
}

char thread_state(pid_t pid, pid_t tid)
{
	char path[64], text[256];
	const char *state = NULL;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n > 0) {
		text[n] = 0;
		state = strrchr(text, ')');
	}
	return state ? state[2] : 0;
}

bool thread_ended(pid_t pid, pid_t tid)
{
	char state = thread_state(pid, tid);

	return !state || state == 'Z' || state == 'X';
}

/* Whether the kernel would let the thread run, if there were a processor. */
static bool thread_runs(pid_t pid, pid_t tid)
{
	char state = thread_state(pid, tid);

	return state == 'R' || state == 'D';
}

/* --- the slots --------------------------------------------------------------------- */

static int64_t request_serve(struct version *v, const struct request *r)
{
	switch (r->kind) {
	case REQ_EXEC:
		return exec_serve(v, r);
	case REQ_EXEC_FAILED:
		exec_failed(v->monitor, r->tid);
		return 0;
	case REQ_MAPPED:
		return mapped_serve(v, r);
	case REQ_SITE_HOT:
		return hot_serve(v, r);
	case REQ_TRACE_ENTER:
	case REQ_TRACE_EXIT:
	case REQ_TRACE_SIGNAL:
		trace_request(v->monitor, r);
		return 0;
	case REQ_REFUSED:
		refused_say(v, r);
		return 0;
	case REQ_NOTE:
		say_log("note", "%s: %d: %lu %lu %lu", v->name, r->tid, r->args[0], r->args[1],
			r->args[2]);
		if (version_may_say(v))
			note_say(v, r);
		return 0;
	default:
		return -ENOSYS;
	}
}

/* Those that only sessions with followers know. */
static int64_t versions_serve(struct version *v, const struct request *r)
{
	switch (r->kind) {
	case REQ_VERDICT:
		return verdict_serve(v, r);
	case REQ_CRASHED:
		return crashed_serve(v, r);
	case REQ_EXIT:
		return exit_serve(v, r);
	case REQ_TAKE:
		return take_serve(v, r);
	case REQ_REPORTED:
		return reported_serve(v, r);
	case REQ_RUNS:
		return thread_runs(r->pid, (pid_t)r->args[0]);
	case REQ_REALM:
		return realm_serve(v, r);
	case REQ_READ:
		return streams_process_read(v->monitor, v->index, (pid_t)r->args[0]);
	case REQ_QUERY:
		return query_serve(v, r);
	case REQ_KNOWN:
		return version_owns(v, (pid_t)r->args[0], (pid_t)r->args[0]);
	case REQ_CALLER:
		return runtime_calls(r->pid, r->call[0], r->args[0], r->args[1], r->args[2]);
	default:
		return request_serve(v, r);
	}
}

static void slot_serve(struct version *v, uint32_t slot)
{
	struct monitor *m = v->monitor;
	struct request r;
	int64_t reply;

	/* Acquire: pairs with the release of slot_ask. */
	if (__atomic_load_n(&v->area->slot[slot].asked, __ATOMIC_ACQUIRE) != RS_ASKED ||
	    held_is(m, v, slot))
		return;
	switch (asker_find(v, slot, &r)) {
	case ASKER_IS:
		reply = m->conduct ? versions_serve(v, &r) : request_serve(v, &r);
		if (reply != REPLY_LATER)
			asker_answer(v, &r, reply);
		return;
	case ASKER_SOON:
		m->asked_soon = true;
		monitor_wake_after(m, 1);
		return;
	case ASKER_CLOSED:
		asker_refuse(v, slot);
		return;
	case ASKER_NONE:
		return;
	}
}

/* Answers every request that stands in the areas. */
void serve_requests(struct monitor *m)
{
	for (unsigned n = 0; n < m->versions; n++) {
		struct version *v = &m->version[n];
		uint32_t high = version_slots(v);

		for (uint32_t i = 0; i < high; i++)
			slot_serve(v, i);
	}
}
