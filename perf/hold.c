/*
 * The peers: the other ways of holding a program's system calls from outside,
 * each at its barest, so that perf/bench can put mve beside them.
 *
 *	hold [--cpu=N] notify|ptrace|tap|tap-copy|tap-other -- CMD...
 *
 * notify	every call waits for a supervisor, which answers CONTINUE
 * ptrace	a stop at entry and one at exit, the call read once at each
 * tap		eBPF on sys_enter and sys_exit: arguments, result, time
 * tap-copy	the same, with the bytes of read and write
 * tap-other	the same program on, but for another process
 *
 * --cpu moves the supervisor to that CPU; CMD keeps the caller's.  The exit
 * status is CMD's; 3 when the way cannot be had, with the reason.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/benchtap.skel.h"

#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP	1UL
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS		SECCOMP_IOW(4, __u64)
#endif

#define STOP_SYSCALL	(SIGTRAP | 0x80)

static int supervisor_cpu = -1;

static void fail(const char *what)
{
	fprintf(stderr, "hold: %s: %s\n", what, strerror(errno));
	exit(3);
}

static void move_supervisor(void)
{
	cpu_set_t set;

	if (supervisor_cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(supervisor_cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

static int exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 128 + WTERMSIG(status);
}

static void child_exec(char **cmd)
{
	execvp(cmd[0], cmd);
	fail(cmd[0]);
}

/* User notification */

/* The child cannot say its listener's number by a call: each would wait. */
struct hello {
	volatile int listener;	/* 0 not yet, -1 failed */
	volatile int error;
};

static pid_t notify_child;

static void notify_over(int sig)
{
	int status;

	(void)sig;
	if (waitpid(notify_child, &status, WNOHANG) == notify_child)
		_exit(exit_status(status));
}

static void notify_start(struct hello *hello, char **cmd)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K,
					  SECCOMP_RET_USER_NOTIF);
	struct sock_fprog prog = { .len = 1, .filter = &all };
	long fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	hello->error = fd < 0 ? errno : 0;
	hello->listener = fd < 0 ? -1 : (int)fd;
	if (fd < 0)
		_exit(3);
	child_exec(cmd);
}

static int notify_listener(const struct hello *hello)
{
	int pidfd = (int)syscall(SYS_pidfd_open, notify_child, 0);
	int fd;

	for (int i = 0; !hello->listener && i < 5000; i++)
		usleep(1000);
	errno = hello->error;
	if (hello->listener <= 0)
		fail("seccomp user notification");
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, hello->listener, 0);
	if (fd < 0)
		fail("pidfd_getfd");
	close(pidfd);
	return fd;
}

static int hold_notify(char **cmd)
{
	struct hello *hello = mmap(NULL, sizeof(*hello),
				   PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sigaction over = { .sa_handler = notify_over };
	struct seccomp_notif req;
	struct seccomp_notif_resp resp;
	int fd;

	if (hello == MAP_FAILED)
		fail("mmap");
	notify_child = fork();
	if (notify_child < 0)
		fail("fork");
	if (!notify_child)
		notify_start(hello, cmd);
	move_supervisor();
	fd = notify_listener(hello);
	sigaction(SIGCHLD, &over, NULL);
	notify_over(SIGCHLD);
	/* A kernel before 6.6 does not know the flag and does without. */
	(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
		    SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	for (;;) {
		memset(&req, 0, sizeof(req));
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &req)) {
			if (errno == EINTR)
				continue;
			pause();	/* it has ended: SIGCHLD is near */
			continue;
		}
		resp = (struct seccomp_notif_resp){
			.id = req.id,
			.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
		};
		(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
	return 0;
}

/* ptrace */

static int hold_ptrace(char **cmd)
{
	struct __ptrace_syscall_info info;
	const pid_t pid = fork();
	int status, sig = 0;

	if (pid < 0)
		fail("fork");
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			fail("ptrace");
		raise(SIGSTOP);
		child_exec(cmd);
	}
	move_supervisor();
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, 0,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL |
		   PTRACE_O_TRACEEXEC))
		fail("ptrace");
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, 0, sig) && errno != ESRCH)
			fail("PTRACE_SYSCALL");
		if (waitpid(pid, &status, 0) != pid)
			fail("waitpid");
		if (!WIFSTOPPED(status))
			return exit_status(status);
		sig = 0;
		if (WSTOPSIG(status) == STOP_SYSCALL)
			ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info),
			       &info);
		else if (status >> 16 == 0)
			sig = WSTOPSIG(status);
	}
}

/* eBPF */

static struct benchtap_bpf *tap_open(bool copy)
{
	struct benchtap_bpf *tap = benchtap_bpf__open();

	if (!tap)
		fail("eBPF: open");
	tap->rodata->copy = copy;
	if (benchtap_bpf__load(tap))
		fail("eBPF: load (needs CAP_BPF)");
	if (benchtap_bpf__attach(tap))
		fail("eBPF: attach");
	return tap;
}

static int tap_run(char **cmd, bool copy, bool other)
{
	struct benchtap_bpf *tap;
	int go[2], status;
	char byte = 0;
	pid_t pid;

	libbpf_set_print(NULL);
	if (pipe(go))
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(3);
		close(go[0]);
		child_exec(cmd);
	}
	close(go[0]);
	tap = tap_open(copy);
	tap->bss->target = other ? (__u32)getpid() : (__u32)pid;
	move_supervisor();
	if (write(go[1], &byte, 1) != 1)
		fail("pipe");
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid");
	if (!tap->bss->seen) {
		fprintf(stderr, "hold: eBPF: the tap saw no call\n");
		exit(3);
	}
	benchtap_bpf__destroy(tap);
	return exit_status(status);
}

static int hold_tap(char **cmd)
{
	return tap_run(cmd, false, false);
}

static int hold_tap_copy(char **cmd)
{
	return tap_run(cmd, true, false);
}

static int hold_tap_other(char **cmd)
{
	return tap_run(cmd, false, true);
}

static const struct way {
	const char *name;
	int (*run)(char **cmd);
} ways[] = {
	{ "notify", hold_notify },
	{ "ptrace", hold_ptrace },
	{ "tap", hold_tap },
	{ "tap-copy", hold_tap_copy },
	{ "tap-other", hold_tap_other },
};

static int usage(void)
{
	fprintf(stderr, "usage: hold [--cpu=N]"
		" notify|ptrace|tap|tap-copy|tap-other -- CMD...\n");
	return 2;
}

int main(int argc, char **argv)
{
	int i = 1;

	if (i < argc && !strncmp(argv[i], "--cpu=", 6))
		supervisor_cpu = atoi(argv[i++] + 6);
	if (argc - i < 3 || strcmp(argv[i + 1], "--"))
		return usage();
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
		if (!strcmp(argv[i], ways[w].name))
			return ways[w].run(argv + i + 2);
	return usage();
}
