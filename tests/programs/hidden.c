/*
 * SIGSEGV, SIGBUS, SIGILL and SIGSYS as signals like any other, sent by somebody: blocked
 * they wait and are pending, sigsuspend and ppoll let them in, a filter's trap is deadly
 * for a program that blocks or ignores SIGSYS.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "check.h"

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGSYS, SIGUSR1, 40 };
static volatile sig_atomic_t handled;
static volatile int last_value;

static void handler(int sig, siginfo_t *info, void *context)
{
	handled++;
	last_value = info->si_value.sival_int;
}

static void block(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
}

static void send(int sig, int value)
{
	handled = 0;
	CHECK_EQ(sigqueue(getpid(), sig, (union sigval){ .sival_int = value }), 0);
}

static void seen(int value)
{
	sigset_t waits;

	CHECK_EQ(handled, 1);
	CHECK_EQ(last_value, value);
	sigpending(&waits);
	CHECK(sigisemptyset(&waits));
}

static void waits(int sig)
{
	sigset_t set;

	CHECK_EQ(handled, 0);
	CHECK_EQ(sigpending(&set), 0);
	for (int i = 1; i < 65; i++)
		CHECK_EQ(sigismember(&set, i), i == sig);
}

/* Those that come while the thread sleeps, from a child. */
static pid_t sends_later(int sig)
{
	pid_t pid = fork(), parent;

	CHECK(pid >= 0);
	if (pid)
		return pid;
	parent = getppid();
	wait_asleep(parent);
	kill(parent, sig);
	_exit(0);
}

static void let_in(int sig)
{
	struct timespec second = { 10, 0 };
	sigset_t none;
	pid_t pid;

	sigemptyset(&none);
	block(sig);
	send(sig, 1);
	waits(sig);
	CHECK_FAILS(sigsuspend(&none), EINTR);
	seen(1);
	send(sig, 2);
	waits(sig);
	CHECK_FAILS(ppoll(NULL, 0, &second, &none), EINTR);
	seen(2);
	handled = 0;
	pid = sends_later(sig);
	CHECK_FAILS(sigsuspend(&none), EINTR);
	CHECK_EQ(handled, 1);
	CHECK_EQ(status_of(pid), 0);
	handled = 0;
	pid = sends_later(sig);
	CHECK_EQ(usleep(300000), 0);
	CHECK_EQ(status_of(pid), 0);
	waits(sig);
	sigprocmask(SIG_SETMASK, &none, NULL);
	CHECK_EQ(handled, 1);
	on_signal(sig, SIG_IGN, 0);
	pid = sends_later(sig);
	CHECK_EQ(usleep(300000), 0);
	CHECK_EQ(status_of(pid), 0);
}

static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_uname, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP | 7),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { COUNT(code), code };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
}

static void trap_blocked(void)
{
	char room[400];

	on_siginfo(SIGSYS, handler, 0);
	block(SIGSYS);
	filter();
	raw3(SYS_uname, room, 0, 0);
}

static void trap_ignored(void)
{
	char room[400];

	on_signal(SIGSYS, SIG_IGN, 0);
	filter();
	raw3(SYS_uname, room, 0, 0);
}

int main(void)
{
	struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	for (size_t i = 0; i < COUNT(signals); i++) {
		on_siginfo(signals[i], handler, 0);
		let_in(signals[i]);
	}
	CHECK_EQ(child_status(trap_blocked), SIGSYS);
	CHECK_EQ(child_status(trap_ignored), SIGSYS);
	return passed("hidden");
}
