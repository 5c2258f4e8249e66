/*
 * What the inside asks of the monitor, and programs on their way through
 * execve.  A program is seized when its execve begins and let go as soon as it
 * stands ready at its first instruction; no ptrace is in play otherwise.
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

#include "engine/outside/inject.h"
#include "engine/outside/maps.h"
#include "engine/outside/monitor.h"
#include "engine/outside/patch.h"
#include "engine/outside/program.h"
#include "engine/outside/remote.h"
#include "engine/outside/say.h"
#include "engine/outside/witness.h"

static struct tracee *tracee_find(struct monitor *m, pid_t tid)
{
	for (int i = 0; i < TRACEES_MAX; i++)
		if (m->tracees[i].tid == tid)
			return &m->tracees[i];
	return NULL;
}

/* Seizes a thread that is about to call execve; 0 or a negative errno. */
int serve_seize(struct monitor *m, pid_t tid, uint32_t hidden)
{
	struct tracee *free_row = tracee_find(m, 0);

	if (!free_row)
		return -EAGAIN;
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD) < 0)
		return -errno;
	*free_row = (struct tracee){ tid, hidden };
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
static int path_seen(pid_t pid, pid_t tid, const struct request *r, char *out, size_t size)
{
	char path[3000];
	int dir = (int)r->args[1], n;

	if (path_read(pid, r->args[0], path, sizeof(path)))
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

/*
 * Whether the process is one of ours, by the area that it has mapped: the pid
 * comes from memory that the program can write, or from another pid namespace.
 */
static bool of_session(struct monitor *m, pid_t pid, pid_t tid)
{
	struct maps maps;
	struct stat st;
	char task[64];
	bool ours = false;

	snprintf(task, sizeof(task), "/proc/%d/task/%d", pid, tid);
	if (access(task, F_OK) < 0 || fstat(m->area_fd, &st) < 0 || maps_read(pid, &maps))
		return false;
	for (size_t i = 0; i < maps.n && !ours; i++)
		ours = maps.map[i].shared && maps.map[i].inode == st.st_ino &&
		       strstr(maps.map[i].path, "memfd:mve-area");
	maps_free(&maps);
	return ours;
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
static bool is_filtered(struct monitor *m, pid_t pid)
{
	char name[64], line[256];
	bool filtered = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	f = m->area->filters ? fopen(name, "re") : NULL;
	while (f && fgets(line, sizeof(line), f))
		filtered |= !strncmp(line, "Seccomp:\t", 9) && line[9] != '0';
	if (f)
		fclose(f);
	return filtered;
}

/* 0: go on, seized; 1: go on, unheld; negative: the execve fails so. */
static int64_t exec_serve(struct monitor *m, const struct request *r)
{
	enum program_verdict v = PROGRAM_UNKNOWN;
	char path[4096];

	if (!of_session(m, r->pid, r->tid))
		return 1;
	if (!path_seen(r->pid, r->tid, r, path, sizeof(path)))
		v = program_look(path, geteuid() == 0);
	if (v == PROGRAM_32BIT) {
		say_error(program_hint(v), "cannot hold a program: %s: %s",
			  path + strcspn(path + 1, "/") + 1, program_reason(v));
		return -ENOEXEC;
	}
	if (v == PROGRAM_UNKNOWN && same_root(r->pid) && access(path, F_OK) < 0 && errno == ENOENT)
		return EXEC_GO_FAILS;
	if (v != PROGRAM_PRIVILEGED && !is_filtered(m, r->pid) && serve_seize(m, r->tid, (uint32_t)r->args[2]) == 0)
		return 0;
	m->unheld++;
	say_log("exec", "%d: runs unheld: %s: %s", r->pid, path, program_reason(v));
	return 1;
}

/* The execve failed: the thread must stop to be let go. */
static void exec_failed(struct monitor *m, pid_t tid)
{
	if (tracee_find(m, tid))
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
}

static void audit_image(struct monitor *m, pid_t pid, uint64_t base)
{
	struct audit_ranges r;

	if (!m->audit)
		return;
	witness_ranges(base, &r);
	audit_set_image(m->audit, pid, &r);
}

static void program_begin(struct monitor *m, pid_t pid, uint32_t hidden)
{
	struct inject_want want = { m->area, m->area_fd, m->area->images, hidden };
	int result = inject(pid, &want);

	if (!result) {
		audit_image(m, pid, m->area->image[want.image % AREA_IMAGES].inside);
		__atomic_fetch_add(&m->area->images, 1, __ATOMIC_RELEASE);
	} else {
		m->unheld++;
		say_error("mve doctor shows what this machine lacks",
			  "cannot hold a program: pid %d: %s", pid, strerror(-result));
	}
	ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* A thread other than the first may have called execve: its row is its old id. */
static uint32_t tracee_drop(struct monitor *m, pid_t pid)
{
	unsigned long before = 0;
	struct tracee *row;
	uint32_t hidden;

	ptrace(PTRACE_GETEVENTMSG, pid, 0, &before);
	row = before ? tracee_find(m, (pid_t)before) : NULL;
	if (!row)
		row = tracee_find(m, pid);
	if (!row)
		return 0;
	hidden = row->hidden;
	*row = (struct tracee){ 0 };
	return hidden;
}

static void tracee_stopped(struct monitor *m, pid_t pid, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (event == PTRACE_EVENT_EXEC) {
		program_begin(m, pid, tracee_drop(m, pid));
	} else if (event == PTRACE_EVENT_STOP && sig == SIGTRAP) {
		tracee_drop(m, pid);
		ptrace(PTRACE_DETACH, pid, 0, 0);
	} else if (event == PTRACE_EVENT_STOP) {
		ptrace(PTRACE_LISTEN, pid, 0, 0);
	} else {
		ptrace(PTRACE_CONT, pid, 0, sig);
	}
}

static void server_ended(struct monitor *m, int status)
{
	m->server_ended = true;
	m->server_status = status;
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
		if (pid == m->server)
			server_ended(m, status);
	}
}

/* --- new code ------------------------------------------------------------------ */

static void sum_add(struct monitor *m, uint64_t image, const struct patch_sum *sum)
{
	struct image *row = &m->area->image[image % AREA_IMAGES];

	__atomic_fetch_add(&row->sites_patched, sum->patched, __ATOMIC_RELAXED);
	__atomic_fetch_add(&row->sites_trapped, sum->trapped, __ATOMIC_RELAXED);
}

/* Patches what a process has just mapped; the boards' new cursor or -errno. */
static int64_t mapped_serve(struct monitor *m, struct slot *s, const struct request *r)
{
	struct board_room room = { r->args[3], LIBRARY_BOARDS, r->args[2] };
	uint64_t start = r->args[0], end = start + r->args[1];
	struct patch_sum sum = { 0 };
	struct maps maps;
	int memory = of_session(m, r->pid, r->tid) ? memory_open(r->pid) : -ESRCH;

	if (memory < 0)
		return memory;
	if (room.used <= room.len && !maps_read(r->pid, &maps)) {
		for (size_t i = 0; i < maps.n; i++)
			if (maps.map[i].exec && maps.map[i].start < end && maps.map[i].end > start)
				patch_map(r->pid, memory, &maps.map[i], &room, &sum);
		maps_free(&maps);
	}
	close(memory);
	sum_add(m, r->args[4], &sum);
	s->guards = sum.guards;
	memcpy(s->guard, sum.guard, sizeof(s->guard));
	return (int64_t)(room.used | (sum.unclean || sum.vsyscall ? MAPPED_UNCLEAN : 0));
}

/* A site that proved hot is patched; the room that its board took. */
static int64_t hot_serve(struct monitor *m, const struct request *r)
{
	struct board_room room = { r->args[1], r->args[2] >> 32, (uint32_t)r->args[2] };
	struct patch_sum sum = { .patched = 1 };
	int memory = of_session(m, r->pid, r->tid) ? memory_open(r->pid) : -ESRCH, result;

	if (memory < 0)
		return memory;
	result = room.used <= room.len ? patch_site(r->pid, memory, r->args[0], &room) : -EINVAL;
	close(memory);
	if (result)
		return result;
	sum_add(m, r->args[4], &sum);
	__atomic_fetch_sub(&m->area->image[r->args[4] % AREA_IMAGES].sites_trapped, 1,
			   __ATOMIC_RELAXED);
	return (int64_t)room.used;
}

/* --- words ----------------------------------------------------------------------- */

static void refused_say(const struct request *r)
{
	static const char *const what[][2] = {
		[REFUSED_INT80] = { "a 32-bit system call (int 0x80) was refused",
				    "the program sees ENOSYS; use its 64-bit interface" },
		[REFUSED_GS] = { "setting the GS base was refused", "mve keeps its state there" },
		[REFUSED_IO_URING] = { "io_uring was refused",
				       "the program sees ENOSYS, as on older kernels" },
		[REFUSED_DISPATCH] = { "syscall user dispatch was refused", "mve stands on it" },
	};
	uint64_t n = r->args[0];

	if (n >= REFUSED_INT80 && n <= REFUSED_DISPATCH)
		say_error(what[n][1], "%s: pid %d at 0x%lx", what[n][0], r->pid, r->args[1]);
}

/* --- the slots --------------------------------------------------------------------- */

static int64_t request_serve(struct monitor *m, struct slot *s, const struct request *r)
{
	switch (r->kind) {
	case REQ_EXEC:
		return exec_serve(m, r);
	case REQ_EXEC_FAILED:
		exec_failed(m, r->tid);
		return 0;
	case REQ_MAPPED:
		return mapped_serve(m, s, r);
	case REQ_SITE_HOT:
		return hot_serve(m, r);
	case REQ_TRACE_ENTER:
	case REQ_TRACE_EXIT:
	case REQ_TRACE_SIGNAL:
		trace_request(m, s);
		return 0;
	case REQ_REFUSED:
		refused_say(r);
		return 0;
	default:
		return -ENOSYS;
	}
}

static void answer(struct request *r, int64_t reply)
{
	r->reply = reply;
	/* Release: the asking thread reads the reply after it sees the state. */
	__atomic_store_n(&r->state, RS_ANSWERED, __ATOMIC_RELEASE);
	syscall(SYS_futex, &r->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Answers every request that stands in the area. */
void serve_requests(struct monitor *m)
{
	uint32_t high = __atomic_load_n(&m->area->slots_high, __ATOMIC_ACQUIRE);

	if (high > AREA_THREADS)
		high = AREA_THREADS;
	for (uint32_t i = 0; i < high; i++) {
		struct slot *s = &m->area->slot[i];
		struct request r;

		/* Acquire: pairs with the release of request_post. */
		if (__atomic_load_n(&s->request.state, __ATOMIC_ACQUIRE) != RS_ASKED)
			continue;
		r = s->request;		/* read once: the program can write here */
		answer(&s->request, request_serve(m, s, &r));
	}
}
