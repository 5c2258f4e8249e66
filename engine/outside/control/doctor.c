/*
 * The table of what mve asks of a machine: a new need is a new row here and a
 * probe in doctor_probe.c.  A row is required when `mve run` cannot hold a
 * server without it; all others say what is lost.
 *
 * Every probe runs in a child: it may be killed by somebody's seccomp filter,
 * hang in a broken kernel, or change its process for good (Syscall User
 * Dispatch, robust lists), and the doctor goes on to the next row.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "engine/core/must.h"
#include "engine/outside/control/doctor.h"

#define PROBE_SECONDS	5
_Static_assert(sizeof(struct doctor_finding) <= PIPE_BUF, "it comes whole, or not at all");

const struct doctor_check doctor_checks[] = {
	{ "x86-64", true, "everything: the gate is x86-64 code",
	  "use an x86-64 machine", probe_machine },
	{ "FSGSBASE", true, "the per-thread state of the gate",
	  "use Linux 5.9 or later on a processor from 2012 on, and boot without nofsgsbase",
	  probe_fsgsbase },
	{ "Syscall User Dispatch", true,
	  "the net under the patched system calls",
	  "use Linux 5.11 or later; in a container or sandbox, let it pass "
	  "prctl(PR_SET_SYSCALL_USER_DISPATCH)",
	  probe_dispatch },
	{ "ptrace of a child", true, "bringing a program under mve",
	  "sysctl -w kernel.yama.ptrace_scope=1; in a container, --cap-add=SYS_PTRACE or a seccomp "
	  "profile that allows ptrace",
	  probe_ptrace },
	{ "process_vm_writev", true, "setting up a program's pages",
	  "use a kernel with CONFIG_CROSS_MEMORY_ATTACH; in a container, a seccomp profile that "
	  "allows it",
	  probe_vm_writev },
	{ "/proc/PID/mem writes", true, "patching a program's text",
	  "mount /proc; boot with proc_mem.force_override=ptrace if it was set to never",
	  probe_proc_mem },
	{ "pidfd_open", true, "watching the processes of a session",
	  "use Linux 5.3 or later; in a container, a seccomp profile that allows it",
	  probe_pidfd_open },
	{ "memfd_create", true, "the pages that monitor and program share",
	  "sysctl -w vm.memfd_noexec=0; let SELinux allow execmem",
	  probe_memfd },
	{ "robust futexes", true, "seeing that the monitor died",
	  "use a kernel with CONFIG_FUTEX", probe_robust },
	{ "session folder", true, "naming and finding sessions",
	  "free the disk, or point XDG_RUNTIME_DIR at a folder of your own with mode 0700",
	  probe_folder },
	{ "pidfd_getfd", false, "failover and live update",
	  "use Linux 5.6 or later; in a container, a seccomp profile that allows it",
	  probe_pidfd_getfd },
	{ "cgroup", false, "ending what a follower started and what has left it",
	  "mount cgroup2 for writing; as a user, run mve by systemd-run --user --scope "
	  "-p Delegate=yes",
	  probe_cgroup },
	{ "open files", false, "sessions of many processes",
	  "ulimit -n 4096, or LimitNOFILE= in the service's unit",
	  probe_nofile },
	{ "locked memory", false, "the fastest way to log to disk",
	  "ulimit -l 8192, or LimitMEMLOCK= in the service's unit",
	  probe_memlock },
	{ "overcommit", false,
	  "memory that mve reserves and does not use counts in full",
	  "sysctl -w vm.overcommit_memory=0, or add 64 MiB of swap for each session",
	  probe_overcommit },
	{ "mmap_min_addr", false,
	  "patching programs that are linked at a fixed low address",
	  "sysctl -w vm.mmap_min_addr=65536", probe_min_addr },
	{ "futex_waitv", false, "a follower that sleeps without looking up each 10 ms",
	  "use Linux 5.16 or later, or a sandbox that allows futex_waitv and membarrier",
	  probe_waking },
	{ "userfaultfd", false, "memory checkpoints",
	  "use a kernel with CONFIG_USERFAULTFD, 5.11 or later",
	  probe_userfaultfd },
	{ "seccomp notification", false, "containing followers in the kernel",
	  "use Linux 5.0 or later with CONFIG_SECCOMP_FILTER",
	  probe_seccomp },
	{ "PR_SET_MM_MAP", false, "a checkpoint's own process layout",
	  "use a kernel with CONFIG_CHECKPOINT_RESTORE", probe_mm_map },
	{ "eBPF rights", false, "mve audit",
	  "run as root, or give mve the rights: setcap cap_bpf,cap_perfmon+ep mve",
	  probe_bpf_rights },
	{ "kernel BTF", false, "mve audit",
	  "use a kernel with CONFIG_DEBUG_INFO_BTF", probe_btf },
	{ "audit program", false, "mve audit",
	  "give the two above; the first process id namespace is needed too",
	  probe_audit },
};

const int doctor_checks_count =
	sizeof(doctor_checks) / sizeof(doctor_checks[0]);

static void run_in_child(const struct doctor_check *check, int out)
{
	struct doctor_finding f = { 0 };

	alarm(PROBE_SECONDS);
	f.ok = check->probe(&f);
	_exit(write(out, &f, sizeof(f)) != sizeof(f));
}

/* The pipe ends when the child does: nobody else has its writing end. */
static bool collect(int in, struct doctor_finding *f)
{
	ssize_t got;

	do
		got = read(in, f, sizeof(*f));
	while (got < 0 && errno == EINTR);
	f->detail[sizeof(f->detail) - 1] = '\0';
	return got == (ssize_t)sizeof(*f);
}

static void explain_death(int status, struct doctor_finding *f)
{
	f->ok = false;
	if (WIFSIGNALED(status))
		snprintf(f->detail, sizeof(f->detail), "the probe died: %s",
			 strsignal(WTERMSIG(status)));
	else
		snprintf(f->detail, sizeof(f->detail), "the probe gave up");
}

static void fail(struct doctor_finding *f, const char *what)
{
	f->ok = false;
	snprintf(f->detail, sizeof(f->detail), "%s: %s", what, strerror(errno));
}

void doctor_run(const struct doctor_check *check, struct doctor_finding *f)
{
	int tube[2], status = 0;
	bool whole;
	pid_t pid;

	MUST(check->name && check->probe && check->lost && check->remedy);
	if (pipe(tube)) {
		fail(f, "pipe");
		return;
	}
	pid = fork();
	if (!pid) {
		close(tube[0]);
		run_in_child(check, tube[1]);
	}
	close(tube[1]);
	whole = pid > 0 && collect(tube[0], f);
	close(tube[0]);
	if (pid < 0) {
		fail(f, "fork");
		return;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!whole)
		explain_death(status, f);
}
