/*
 * The program's own seccomp filters: a strict allow list, ERRNO, KILL, in
 * one thread and for all of them, before and after threads exist; strict
 * mode; what /proc and prctl say of filters is the kernel's business.  A
 * sandboxed program must go on working, and be held by its own rules.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "check.h"

#define LOAD_NR BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define IF_NR(number, what) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(what)

static long install(struct sock_filter *code, int count, unsigned flags)
{
	struct sock_fprog program = { count, code };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Only what is named passes; everything else ends the process. */
static void allow_list(void)
{
	struct sock_filter code[] = {
		LOAD_NR,
		IF_NR(SYS_write, SECCOMP_RET_ALLOW),
		IF_NR(SYS_read, SECCOMP_RET_ALLOW),
		IF_NR(SYS_getpid, SECCOMP_RET_ALLOW),
		IF_NR(SYS_exit_group, SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_KILL_PROCESS),
	};
	pid_t pid = getpid();
	int fds[2];
	char c;

	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(install(code, COUNT(code), 0), 0);
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(write(fds[1], "x", 1), 1);
		CHECK_EQ(read(fds[0], &c, 1), 1);
		CHECK_EQ(raw0(SYS_getpid), pid);
	}
	_exit(9);
}

static void beyond_allow_list(void)
{
	struct sock_filter code[] = {
		LOAD_NR,
		IF_NR(SYS_exit_group, SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_KILL_PROCESS),
	};

	CHECK_EQ(install(code, COUNT(code), 0), 0);
	raw0(SYS_getppid);
}

static void with_signals(void);

static void with_errno(void)
{
	struct sock_filter code[] = {
		LOAD_NR,
		IF_NR(SYS_getppid, SECCOMP_RET_ERRNO | EPERM),
		IF_NR(SYS_mkdir, SECCOMP_RET_ERRNO | EXFULL),
		RETURN(SECCOMP_RET_ALLOW),
	};

	CHECK_EQ(install(code, COUNT(code), 0), 0);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(raw0(SYS_getppid), -EPERM);
		CHECK_FAILS(mkdir("/x", 0777), EXFULL);
		CHECK_EQ(raw0(SYS_getpid), getpid());
	}
	pid_t pid = fork();
	if (!pid)
		_exit(raw0(SYS_getppid) == -EPERM ? 4 : 1);
	CHECK_EQ(status_of(pid), EXITED(4));
	with_signals();
}

static volatile sig_atomic_t handled;

static void handler(int sig)
{
	CHECK_EQ(raw0(SYS_getppid), -EPERM);
	handled++;
}

static void with_signals(void)
{
	on_signal(SIGUSR1, handler, 0);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	CHECK_EQ(handled, 100);
}

/* The address of the call decides too: sandboxes look at it. */
static void by_argument(void)
{
	struct sock_filter code[] = {
		LOAD_NR,
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77, 0, 1),
		RETURN(SECCOMP_RET_ERRNO | EBUSY),
		RETURN(SECCOMP_RET_ALLOW),
	};

	CHECK_EQ(install(code, COUNT(code), 0), 0);
	CHECK_FAILS(close(77), EBUSY);
	CHECK_FAILS(close(78), EBADF);
}

static volatile int phase;

static void *in_thread(void *synced)
{
	while (phase < 1)
		sched_yield();
	long ret = raw0(SYS_getppid);
	CHECK_EQ(ret == -EPERM, synced != NULL);
	return NULL;
}

static void threads(bool sync)
{
	struct sock_filter code[] = {
		LOAD_NR,
		IF_NR(SYS_getppid, SECCOMP_RET_ERRNO | EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};
	pthread_t before[4], after;

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&before[i], NULL, in_thread,
					sync ? "x" : NULL), 0);
	CHECK_EQ(install(code, COUNT(code), sync ? SECCOMP_FILTER_FLAG_TSYNC : 0),
		 0);
	phase = 1;
	CHECK_EQ(raw0(SYS_getppid), -EPERM);
	CHECK_EQ(pthread_create(&after, NULL, in_thread, "x"), 0);
	pthread_join(after, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(before[i], NULL);
}

static void threads_apart(void)
{
	threads(false);
}

static void threads_synced(void)
{
	threads(true);
}

static void kill_thread(void)
{
	struct sock_filter code[] = {
		LOAD_NR,
		IF_NR(SYS_getppid, SECCOMP_RET_KILL_THREAD),
		RETURN(SECCOMP_RET_ALLOW),
	};

	CHECK_EQ(install(code, COUNT(code), 0), 0);
	raw0(SYS_getppid);
}

static void strict_good(void)
{
	int fds[2];
	char c;

	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), 0);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(write(fds[1], "x", 1), 1);
		CHECK_EQ(read(fds[0], &c, 1), 1);
	}
	raw3(SYS_exit, 6, 0, 0);
}

static void strict_bad(void)
{
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), 0);
	raw0(SYS_getpid);
}

static void errors(void)
{
	struct sock_filter bad[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 999) };
	uint32_t action = SECCOMP_RET_TRAP, none = 0x12340000;

	CHECK_FAILS(install(bad, 1, 0), EINVAL);
	CHECK_FAILS(install(bad, 0, 0), EINVAL);
	CHECK_FAILS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 8), EFAULT);
	CHECK_FAILS(syscall(SYS_seccomp, 99, 0, 0), EINVAL);
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action), 0);
	CHECK_FAILS(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &none),
		    EOPNOTSUPP);
}

int main(void)
{
	struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	errors();
	CHECK_EQ(child_status(allow_list), EXITED(9));
	CHECK_EQ(child_status(beyond_allow_list), SIGSYS);
	IN_CHILD(with_errno);
	IN_CHILD(by_argument);
	IN_CHILD(threads_apart);
	IN_CHILD(threads_synced);
	CHECK_EQ(child_status(kill_thread), SIGSYS);
	CHECK_EQ(child_status(strict_good), EXITED(6));
	CHECK_EQ(child_status(strict_bad), SIGKILL);
	return passed("seccomp_own");
}
