/*
 * What cannot be attached to is refused here, a row each.  Each row looks at /proc alone; what
 * cannot be read is refused for that.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/attach/may.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/cost.h"
#include "engine/outside/patch/patch.h"
#include "engine/outside/plan/plan.h"
#include "engine/outside/session/memory.h"

#define KERNEL_THREAD	0x00200000	/* PF_KTHREAD, of field 9 of /proc/PID/stat */
#define ROOM_NEEDED	(64ull << 20)	/* of the address space; and of each thread: */
#define ROOM_THREAD	(64ull << 10)
#define MEMORY_NEEDED	(16ull << 20)	/* code that is written, blocks, tables: at the most */
#define GET_DISPATCH	0x4211		/* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG */

/* A number of /proc/PID/status behind its name; -1: there is none. */
static long status_number(pid_t pid, const char *name)
{
	char path[32], line[256];
	size_t len = strlen(name);
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':')
			value = strtol(line + len + 1, NULL, 10);
	fclose(f);
	return value;
}

/* In its stat, from the state on. */
static unsigned long stat_flags(pid_t pid, char *state)
{
	char path[32], line[1024], *at;
	unsigned long flags = 0;
	FILE *f;

	*state = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	at = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	if (at && sscanf(at + 1, " %c %*d %*d %*d %*d %*d %lu", state, &flags) != 2)
		flags = 0;
	return flags;
}

/* --- the rows --------------------------------------------------------------------------- */

static bool is_missing(pid_t pid)
{
	return !process_began(pid);
}

static bool is_us(pid_t pid)
{
	char name[32];
	struct stat own, its;

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	return !stat("/proc/self/exe", &own) && !stat(name, &its) && own.st_ino == its.st_ino &&
	       own.st_dev == its.st_dev;
}

static bool is_kernels(pid_t pid)
{
	char state;

	return stat_flags(pid, &state) & KERNEL_THREAD;
}

static bool has_ended(pid_t pid)
{
	char state;

	stat_flags(pid, &state);
	return state == 'Z' || state == 'X';
}

static bool is_stopped(pid_t pid)
{
	char state;

	stat_flags(pid, &state);
	return state == 'T';
}

static bool is_traced(pid_t pid)
{
	pid_t tracer = process_tracer(pid);

	return tracer && tracer != getpid();
}

static bool is_closed(pid_t pid)
{
	int memory = memory_open(pid);

	if (memory < 0)
		return true;
	memory_close(memory);
	return false;
}

static bool is_filtered(pid_t pid)
{
	return status_number(pid, "Seccomp") > 0;
}

/* The numbers of its processes are none of ours. */
static bool is_elsewhere(pid_t pid)
{
	struct stat ours, its;
	char name[32];

	snprintf(name, sizeof(name), "/proc/%d/ns/pid", pid);
	return !stat("/proc/self/ns/pid", &ours) && !stat(name, &its) && ours.st_ino != its.st_ino;
}

static bool is_32bit(pid_t pid)
{
	unsigned char ident[EI_NIDENT] = { 0 };
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, ident, sizeof(ident)) != sizeof(ident))
		ident[EI_CLASS] = 0;
	close(fd);
	return ident[EI_CLASS] == ELFCLASS32;
}

bool attach_is_held(pid_t pid)
{
	struct maps maps = { 0 };
	bool held = !maps_read(pid, &maps) && maps_held(&maps);

	maps_free(&maps);
	return held;
}

static bool same_memory(pid_t a, pid_t b)
{
	return syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0) == 0;
}

/* Another process has the very same memory: of a vfork, or of a clone by hand. */
static bool is_shared(pid_t pid)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool shared = false;

	while (d && !shared && (e = readdir(d))) {
		pid_t other = atoi(e->d_name);

		shared = other > 0 && other != pid && same_memory(pid, other);
	}
	if (d)
		closedir(d);
	return shared;
}

static bool has_ring(pid_t pid)
{
	char name[64], what[64];
	struct dirent *e;
	bool ring = false;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/%d/fd", pid);
	d = opendir(name);
	while (d && !ring && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, what, sizeof(what) - 1);

		what[n < 0 ? 0 : n] = 0;
		ring = !strcmp(what, "anon_inode:[io_uring]");
	}
	if (d)
		closedir(d);
	return ring;
}

static bool calls_vsyscall(pid_t pid)
{
	int memory = memory_open(pid);
	struct maps maps = { 0 };
	bool calls = false;

	if (memory >= 0 && !maps_read(pid, &maps))
		for (size_t i = 0; i < maps.n && !calls; i++) {
			struct plan *p;

			if (!maps.map[i].exec || patch_plan(pid, memory, &maps.map[i], &p))
				continue;
			calls = p->vsyscall;
			plan_free(p);
		}
	maps_free(&maps);
	if (memory >= 0)
		memory_close(memory);
	return calls;
}

static bool is_short(pid_t pid)
{
	uint64_t size = (uint64_t)status_number(pid, "VmSize") * 1024 + ROOM_NEEDED +
			(uint64_t)status_number(pid, "Threads") * ROOM_THREAD;
	struct rlimit room = { RLIM_INFINITY, RLIM_INFINITY };

	prlimit(pid, RLIMIT_AS, NULL, &room);
	return cost_room(pid) < MEMORY_NEEDED ||
	       (room.rlim_cur != RLIM_INFINITY && size > room.rlim_cur);
}

/* In this order: each may rely on those before it. */
static const struct row {
	bool (*is)(pid_t pid);
	const char *why, *hint;
} rows[] = {
	{ has_ended, "it has ended", "its parent has not asked for its status yet" },
	{ is_missing, "there is no such process", "mve attach wants the pid of a server" },
	{ is_kernels, "it is a thread of the kernel", "mve attach wants the pid of a server" },
	{ is_traced, "a tracer has it", "end the debugger or strace first" },
	{ is_closed, "it is another's: we have no right to it",
	  "run mve attach as its user, or as root; kernel.yama.ptrace_scope may forbid it" },
	{ is_us, "it is mve itself", "mve ps shows its sessions" },
	{ is_elsewhere, "it is in another pid namespace, a container's",
	  "run mve attach in there, or begin it with mve run" },
	{ attach_is_held, "mve holds it already", "mve ps shows the sessions" },
	{ is_stopped, "it is stopped", "let it go on: kill -CONT" },
	{ is_32bit, "it is a 32-bit program", "mve holds 64-bit programs" },
	{ is_filtered, "it runs under a seccomp filter of its own",
	  "a server that mve run starts may have one: its filter comes later" },
	{ has_ring, "it uses io_uring, whose calls nobody sees",
	  "begun by mve run it does without" },
	{ is_shared, "another process has the same memory",
	  "it may be starting a program: try again" },
	{ is_short, "there is too little memory, or its limit (ulimit -v) is near",
	  "16 MiB are needed, and 64 MiB of its address space, with 64 KiB for each thread" },
	{ calls_vsyscall, "it may call by the vsyscall page, which only a filter catches that "
	  "cannot be taken away", "begin it with mve run" },
};

struct attach_no attach_may(pid_t pid)
{
	MUST(pid > 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is(pid))
			return (struct attach_no){ rows[i].why, rows[i].hint };
	return (struct attach_no){ 0 };
}

struct attach_no attach_may_still(pid_t tid)
{
	struct { uint64_t mode, selector, offset, len; } dispatch = { 0 };
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, 0, &regs) < 0)
		return (struct attach_no){ "a thread has ended", "try again" };
	if (regs.gs_base)
		return (struct attach_no){ "it uses the GS base", "mve has its own state there" };
	if (ptrace(GET_DISPATCH, tid, sizeof(dispatch), &dispatch) >= 0 && dispatch.mode)
		return (struct attach_no){ "it uses Syscall User Dispatch", "mve has it itself" };
	return (struct attach_no){ 0 };
}
