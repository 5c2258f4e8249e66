/*
 * The doctor's probes.  Each does the thing itself, on itself or on a child,
 * rather than asking for a version or an option: sandboxes, containers and
 * hardened kernels refuse what their version promises.
 *
 * A probe runs in a process of its own (doctor_run), so it leaks what it
 * opens; but a child that it starts must not outlive it, and nothing may stay
 * in the file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "engine/outside/control/doctor.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/monitor/audit.h"

#define HWCAP2_FSGS	(1ul << 1)
#define SLEEP_SECONDS	10
#define USER_DISPATCH	2	/* SYS_USER_DISPATCH of si_code */
#define CAUGHT		42
#define NAME_ROOM	32	/* a usual session name and "/control" */
#define NOFILE_WANTED	4096
#define MEMLOCK_WANTED	(1ul << 20)
#define FIXED_TEXT	0x400000	/* where ld puts a program without PIE */

__attribute__((format(printf, 2, 3)))
static void say(struct doctor_finding *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(f->detail, sizeof(f->detail), format, args);
	va_end(args);
}

static bool failed(struct doctor_finding *f, const char *what)
{
	say(f, "%s: %s", what, strerror(errno));
	return false;
}

/* The number in a file of /proc/sys, or -1 when there is none. */
static long read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	long n = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &n) != 1)
		n = -1;
	fclose(file);
	return n;
}

/*
 * A child that sleeps, and dies when the probe does: before the prctl too, and
 * by its own alarm where the prctl is refused.
 */
static pid_t sleeper(void)
{
	/* The child of an mve with rights of its own (setcap) is closed, as no program is. */
	bool closed = prctl(PR_GET_DUMPABLE) != 1 && !prctl(PR_SET_DUMPABLE, 1);
	pid_t parent = getpid(), pid = fork();

	if (pid && closed)
		prctl(PR_SET_DUMPABLE, 0);
	if (pid)
		return pid;
	alarm(SLEEP_SECONDS);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(1);
}

static pid_t stopped_sleeper(void)
{
	pid_t pid = sleeper();

	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, 0, 0) ||
	    ptrace(PTRACE_INTERRUPT, pid, 0, 0) ||
	    waitpid(pid, NULL, __WALL) != pid)
		return -1;
	return pid;
}

bool probe_machine(struct doctor_finding *f)
{
	struct utsname u;

	if (uname(&u))
		return failed(f, "uname");
	say(f, "%s %s, %s", u.sysname, u.release, u.machine);
	return !strcmp(u.machine, "x86_64");
}

bool probe_fsgsbase(struct doctor_finding *f)
{
	bool ok = getauxval(AT_HWCAP2) & HWCAP2_FSGS;

	say(f, "%s by AT_HWCAP2", ok ? "offered" : "not offered");
	return ok;
}

/* The one place that may make calls while the dispatch is on. */
long doctor_site(long nr, long arg);
extern const char doctor_site_insn[], doctor_site_end[];
__asm__(".text\n"
	"doctor_site: mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"doctor_site_insn: syscall\n"
	"	ret\n"
	"doctor_site_end:\n");

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
	bool ours = info->si_code == USER_DISPATCH &&
		    info->si_syscall == SYS_getppid;

	(void)sig;
	(void)context;
	doctor_site(SYS_exit_group, ours ? CAUGHT : 1);
}

static void be_dispatched(void)
{
	struct sigaction action = {
		.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO,
	};

	sigaction(SIGSYS, &action, NULL);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
		  doctor_site_insn, doctor_site_end - doctor_site_insn, NULL))
		_exit(errno == CAUGHT ? 1 : errno);
	syscall(SYS_getppid);
	_exit(0);
}

bool probe_dispatch(struct doctor_finding *f)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		be_dispatched();
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return failed(f, "fork");
	if (WIFSIGNALED(status))
		say(f, "a call was not caught: %s", strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == CAUGHT)
		say(f, "a call was caught");
	else if (WEXITSTATUS(status) == 0)
		say(f, "a call was not caught");
	else
		say(f, "prctl: %s", strerror(WEXITSTATUS(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) == CAUGHT;
}

bool probe_ptrace(struct doctor_finding *f)
{
	long scope = read_number("/proc/sys/kernel/yama/ptrace_scope");
	pid_t pid = stopped_sleeper();

	if (pid < 0) {
		say(f, "PTRACE_SEIZE: %s; ptrace_scope %ld", strerror(errno),
		    scope);
		return false;
	}
	if (ptrace(PTRACE_DETACH, pid, 0, 0))
		return failed(f, "PTRACE_DETACH");
	if (scope < 0)
		say(f, "allowed, no Yama");
	else
		say(f, "allowed, Yama's ptrace_scope %ld", scope);
	return true;
}

bool probe_vm_writev(struct doctor_finding *f)
{
	static volatile long word;
	long sent = 0x6d7665, got = 0;
	struct iovec there = { (void *)&word, sizeof(word) };
	struct iovec out = { &sent, sizeof(sent) };
	struct iovec in = { &got, sizeof(got) };
	pid_t pid = sleeper();

	if (pid < 0)
		return failed(f, "fork");
	if (process_vm_writev(pid, &out, 1, &there, 1, 0) != sizeof(sent))
		return failed(f, "process_vm_writev");
	if (process_vm_readv(pid, &in, 1, &there, 1, 0) != sizeof(got))
		return failed(f, "process_vm_readv");
	say(f, got == sent ? "a child's memory" : "wrote something else");
	return got == sent;
}

bool probe_proc_mem(struct doctor_finding *f)
{
	char path[64], got = 0;
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	pid_t pid = stopped_sleeper();
	int mem;

	if (page == MAP_FAILED || pid < 0)
		return failed(f, "a stopped child");
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = open(path, O_RDWR | O_CLOEXEC);
	if (mem < 0)
		return failed(f, path);
	if (pwrite(mem, "x", 1, (uintptr_t)page) != 1)
		return failed(f, "a read-only page");
	if (pread(mem, &got, 1, (uintptr_t)page) != 1 || got != 'x')
		return failed(f, "reading it back");
	say(f, "read-only pages of a traced child too");
	return true;
}

bool probe_pidfd_open(struct doctor_finding *f)
{
	if (syscall(SYS_pidfd_open, getpid(), 0) < 0)
		return failed(f, "pidfd_open");
	say(f, "works");
	return true;
}

bool probe_pidfd_getfd(struct doctor_finding *f)
{
	int tube[2], pidfd;
	pid_t pid;

	if (pipe(tube))
		return failed(f, "pipe");
	pid = sleeper();
	pidfd = pid < 0 ? -1 : syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return failed(f, "pidfd_open");
	if (syscall(SYS_pidfd_getfd, pidfd, tube[0], 0) < 0)
		return failed(f, "pidfd_getfd");
	say(f, "a child's descriptor");
	return true;
}

bool probe_memfd(struct doctor_finding *f)
{
	int fd = memfd_create("mve-doctor", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, 4096))
		return failed(f, "memfd_create");
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
	    MAP_FAILED)
		return failed(f, "mapping it shared");
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) ==
	    MAP_FAILED)
		return failed(f, "mapping it executable");
	say(f, "shared and executable mappings");
	return true;
}

/* A child dies holding the lock; the kernel must say so to the next. */
bool probe_robust(struct doctor_finding *f)
{
	struct timespec until = { 0 };
	pthread_mutexattr_t attr;
	pthread_mutex_t *lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int err;

	if (lock == MAP_FAILED)
		return failed(f, "mmap");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attr);
	pid = fork();
	if (!pid)
		_exit(pthread_mutex_lock(lock));
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		return failed(f, "fork");
	err = pthread_mutex_timedlock(lock, &until);
	say(f, err == EOWNERDEAD ? "a holder's death is told" :
				   "a holder's death is not told");
	return err == EOWNERDEAD;
}

static bool write_probe(struct doctor_finding *f, const char *folder)
{
	static const char block[4096];
	char path[PATH_MAX];
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/.doctor-%d", folder, getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return failed(f, folder);
	ok = write(fd, block, sizeof(block)) == sizeof(block);
	if (!ok)
		failed(f, folder);
	unlink(path);
	return ok;
}

static bool check_folder(struct doctor_finding *f, const char *folder)
{
	size_t room = sizeof(((struct sockaddr_un *)0)->sun_path);
	struct stat st;

	if (lstat(folder, &st))
		return failed(f, folder);
	say(f, "%s", folder);
	if (!S_ISDIR(st.st_mode))
		say(f, "not a folder: %s", folder);
	else if (st.st_uid != geteuid())
		say(f, "somebody else's: %s", folder);
	else if (st.st_mode & 077)
		say(f, "its mode is not 0700: %s", folder);
	else if (strlen(folder) + NAME_ROOM > room)
		say(f, "too long for a socket: %s", folder);
	else
		return write_probe(f, folder);
	return false;
}

bool probe_folder(struct doctor_finding *f)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	char folder[PATH_MAX - 32];
	bool made, ok;

	if (run && *run)
		snprintf(folder, sizeof(folder), "%s/mve", run);
	else
		snprintf(folder, sizeof(folder), "/tmp/mve-%d", geteuid());
	made = !mkdir(folder, 0700);
	if (!made && errno != EEXIST)
		return failed(f, folder);
	ok = check_folder(f, folder);
	if (made)
		rmdir(folder);
	return ok;
}

static bool probe_limit(struct doctor_finding *f, int what,
			unsigned long wanted)
{
	struct rlimit limit;

	if (getrlimit(what, &limit))
		return failed(f, "getrlimit");
	if (limit.rlim_max == RLIM_INFINITY)
		say(f, "no limit");
	else
		say(f, "at most %lu, wanted %lu", limit.rlim_max, wanted);
	return limit.rlim_max >= wanted;
}

bool probe_nofile(struct doctor_finding *f)
{
	return probe_limit(f, RLIMIT_NOFILE, NOFILE_WANTED);
}

bool probe_memlock(struct doctor_finding *f)
{
	return probe_limit(f, RLIMIT_MEMLOCK, MEMLOCK_WANTED);
}

bool probe_overcommit(struct doctor_finding *f)
{
	long mode = read_number("/proc/sys/vm/overcommit_memory");

	say(f, "vm.overcommit_memory %ld", mode);
	return mode != 2;
}

bool probe_cgroup(struct doctor_finding *f)
{
	char path[PATH_MAX] = "";
	int own = cgroup_own(path, sizeof(path));
	int made = own < 0 ? own : cgroup_make(own, "doctor");

	if (made >= 0) {
		say(f, "beneath %s", path);
		close(made);
		cgroup_remove(own, "doctor");
	} else {
		errno = -made;
		failed(f, "a cgroup beneath ours");
	}
	if (own >= 0)
		close(own);
	return made >= 0;
}

bool probe_min_addr(struct doctor_finding *f)
{
	long lowest = read_number("/proc/sys/vm/mmap_min_addr");

	say(f, "vm.mmap_min_addr %ld", lowest);
	return lowest < FIXED_TEXT;
}

/* What lanes/sleep.c sleeps and wakes by. */
bool probe_waking(struct doctor_finding *f)
{
	uint32_t word = 0;
	struct futex_waitv one = { .val = 1, .uaddr = (uintptr_t)&word, .flags = FUTEX_32 };

	if (syscall(SYS_futex_waitv, &one, 1, 0, NULL, CLOCK_MONOTONIC) >= 0 || errno != EAGAIN)
		return failed(f, "futex_waitv");
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0))
		return failed(f, "membarrier");
	say(f, "works");
	return true;
}

bool probe_userfaultfd(struct doctor_finding *f)
{
	if (syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY) < 0)
		return failed(f, "userfaultfd");
	say(f, "user mode faults");
	return true;
}

bool probe_seccomp(struct doctor_finding *f)
{
	uint32_t action = SECCOMP_RET_USER_NOTIF;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action))
		return failed(f, "seccomp");
	say(f, "works");
	return true;
}

bool probe_mm_map(struct doctor_finding *f)
{
	unsigned int size = 0;

	if (prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0))
		return failed(f, "prctl");
	say(f, "%u bytes", size);
	return true;
}

static bool has_right(const struct __user_cap_data_struct *data, int right)
{
	return data[right / 32].effective >> (right % 32) & 1;
}

bool probe_bpf_rights(struct doctor_finding *f)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];
	bool all, bpf, perfmon;

	if (syscall(SYS_capget, &head, data))
		return failed(f, "capget");
	all = has_right(data, CAP_SYS_ADMIN);
	bpf = all || has_right(data, CAP_BPF);
	perfmon = all || has_right(data, CAP_PERFMON);
	say(f, "%sCAP_BPF, %sCAP_PERFMON", bpf ? "" : "no ",
	    perfmon ? "" : "no ");
	return bpf && perfmon;
}

bool probe_btf(struct doctor_finding *f)
{
	static const char path[] = "/sys/kernel/btf/vmlinux";

	if (access(path, R_OK))
		return failed(f, path);
	say(f, "%s", path);
	return true;
}

bool probe_audit(struct doctor_finding *f)
{
	struct audit *a = audit_open();

	say(f, "%s", a ? "loads and attaches" : audit_why());
	audit_close(a);
	return a != NULL;
}
