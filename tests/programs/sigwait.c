/*
 * Signals taken without a handler: sigwait, sigtimedwait, signalfd; SIGSYS
 * may be waited for like any other.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include "check.h"

static void waits(void)
{
	sigset_t set;
	siginfo_t info;
	struct timespec none = { 0, 0 }, some = { 0, 1000000 };
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGSYS);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_FAILS(sigtimedwait(&set, NULL, &none), EAGAIN);
	CHECK_FAILS(sigtimedwait(&set, NULL, &some), EAGAIN);
	for (int i = 0; i < 100; i++) {
		int sig = i & 1 ? SIGSYS : SIGUSR1;
		CHECK_EQ(sigqueue(getpid(), sig, (union sigval){ i }), 0);
		CHECK_EQ(sigwaitinfo(&set, &info), sig);
		CHECK_EQ(info.si_value.sival_int, i);
		CHECK_EQ(info.si_pid, getpid());
		raise(sig);
		CHECK_EQ(sigwait(&set, &got), 0);
		CHECK_EQ(got, sig);
	}
	CHECK_FAILS(sigtimedwait(&set, NULL, &none), EAGAIN);
}

static void by_descriptor(void)
{
	struct signalfd_siginfo info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	CHECK(fd >= 0);
	struct pollfd readable = { fd, POLLIN };
	CHECK_FAILS(read(fd, &info, sizeof(info)), EAGAIN);
	for (int i = 0; i < 50; i++) {
		int sig = i & 1 ? SIGUSR2 : SIGUSR1;
		CHECK_EQ(kill(getpid(), sig), 0);
		CHECK_EQ(poll(&readable, 1, 1000), 1);
		CHECK_EQ(read(fd, &info, sizeof(info)), sizeof(info));
		CHECK_EQ(info.ssi_signo, sig);
		CHECK_EQ(info.ssi_pid, getpid());
	}
	pid_t pid = fork();
	if (!pid)
		_exit(8);
	CHECK_EQ(poll(&readable, 1, 5000), 1);
	CHECK_EQ(read(fd, &info, sizeof(info)), sizeof(info));
	CHECK_EQ(info.ssi_signo, SIGCHLD);
	CHECK_EQ(info.ssi_pid, pid);
	CHECK_EQ(info.ssi_status, 8);
	CHECK_EQ(status_of(pid), EXITED(8));
	close(fd);
}

static void *waiter(void *arg)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(sigwait(&set, &got), 0);
		CHECK_EQ(got, SIGTERM);
		__atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* The classical signal thread of a server. */
static void by_thread(void)
{
	pthread_t thread;
	sigset_t set;
	int count = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	CHECK_EQ(pthread_create(&thread, NULL, waiter, &count), 0);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(kill(getpid(), SIGTERM), 0);
		while (__atomic_load_n(&count, __ATOMIC_SEQ_CST) <= i)
			sched_yield();
	}
	pthread_join(thread, NULL);
}

int main(void)
{
	waits();
	by_descriptor();
	by_thread();
	return passed("sigwait");
}
