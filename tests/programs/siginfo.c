/*
 * What a handler is told: si_code, si_pid, si_uid, the value of sigqueue, of
 * timers and of SIGCHLD; a signal to oneself arrives before kill returns;
 * real-time signals queue in order.
 */
#include <pthread.h>
#include "check.h"

static volatile sig_atomic_t count;
static volatile siginfo_t last;
static volatile int order[64];

static void handler(int sig, siginfo_t *info, void *context)
{
	CHECK_EQ(info->si_signo, sig);
	last = *info;
	order[count++ & 63] = info->si_value.sival_int;
}

static void got(int sig, int code, int n)
{
	CHECK_EQ(count, n);
	CHECK_EQ(last.si_signo, sig);
	CHECK_EQ(last.si_code, code);
	count = 0;
}

static void got_from_self(int sig, int code)
{
	got(sig, code, 1);
	CHECK_EQ(last.si_pid, getpid());
	CHECK_EQ(last.si_uid, getuid());
}

static void to_oneself(void)
{
	for (int sig = 1; sig <= 64; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP ||
		    (sig >= 32 && sig <= 34))	/* libc's own */
			continue;
		on_siginfo(sig, handler, 0);
		CHECK_EQ(kill(getpid(), sig), 0);
		got_from_self(sig, SI_USER);
		CHECK_EQ(raw3(SYS_kill, getpid(), sig, 0), 0);
		got_from_self(sig, SI_USER);
		CHECK_EQ(raw3(SYS_tgkill, getpid(), gettid(), sig), 0);
		got_from_self(sig, SI_TKILL);
		CHECK_EQ(raise(sig), 0);
		got_from_self(sig, SI_TKILL);
		CHECK_EQ(pthread_kill(pthread_self(), sig), 0);
		got_from_self(sig, SI_TKILL);
		union sigval value = { .sival_ptr = (void *)0x123456789abc };
		CHECK_EQ(sigqueue(getpid(), sig, value), 0);
		got_from_self(sig, SI_QUEUE);
		CHECK_EQ(last.si_value.sival_ptr, 0x123456789abc);
		on_signal(sig, SIG_DFL, 0);
	}
}

static void queued_in_order(void)
{
	sigset_t set, old;

	on_siginfo(SIGRTMIN + 3, handler, 0);
	on_siginfo(SIGUSR1, handler, 0);
	sigfillset(&set);
	CHECK_EQ(sigprocmask(SIG_SETMASK, &set, &old), 0);
	for (int i = 0; i < 50; i++)
		CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 3,
				  (union sigval){ .sival_int = i }), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(count, 0);
	CHECK_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);
	CHECK_EQ(count, 51);
	count = 0;
	for (int i = 0; i < 50; i++)
		CHECK_EQ(order[i], i);
}

static void of_a_timer(void)
{
	struct itimerspec soon = { .it_value = { 0, 1000000 } };
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1,
		.sigev_value.sival_int = 99,
	};
	timer_t timer;

	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &soon, NULL), 0);
	while (!count)
		sched_yield();
	got(SIGUSR1, SI_TIMER, 1);
	CHECK_EQ(last.si_value.sival_int, 99);
	CHECK_EQ(timer_delete(timer), 0);
}

static void of_a_child(void)
{
	on_siginfo(SIGCHLD, handler, 0);
	pid_t pid = fork();
	if (!pid)
		_exit(55);
	while (!count)
		sched_yield();
	got(SIGCHLD, CLD_EXITED, 1);
	CHECK_EQ(last.si_pid, pid);
	CHECK_EQ(last.si_status, 55);
	CHECK_EQ(status_of(pid), EXITED(55));
	pid = fork();
	if (!pid) {
		kill(getppid(), SIGUSR1);
		raise(SIGKILL);
	}
	while (count < 2)
		sched_yield();
	CHECK_EQ(last.si_pid, pid);
	count = 0;
	CHECK_EQ(status_of(pid), SIGKILL);
	on_signal(SIGCHLD, SIG_DFL, 0);
}

static void of_a_pipe(void)
{
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	close(fds[0]);
	on_siginfo(SIGPIPE, handler, 0);
	CHECK_FAILS(write(fds[1], "x", 1), EPIPE);
	got_from_self(SIGPIPE, SI_USER);
	on_signal(SIGPIPE, SIG_IGN, 0);
	CHECK_FAILS(write(fds[1], "x", 1), EPIPE);
	CHECK_EQ(count, 0);
	close(fds[1]);
}

int main(void)
{
	for (int i = 0; i < 5; i++) {
		to_oneself();
		queued_in_order();
	}
	of_a_timer();
	of_a_child();
	of_a_pipe();
	CHECK_FAILS(kill(getpid(), 65), EINVAL);
	CHECK_EQ(kill(getpid(), 0), 0);
	return passed("siginfo");
}
