/*
 * The wait family: statuses of children that exited, were killed, stopped
 * and continued; waitid's siginfo; WNOHANG, WNOWAIT; rusage; SIGCHLD ignored;
 * orphans, which get another parent; a daemon's double fork.
 */
#include <sys/resource.h>
#include "check.h"

static void exits(void)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(77);
	CHECK_EQ(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
	CHECK_EQ(info.si_signo, SIGCHLD);
	CHECK_EQ(info.si_code, CLD_EXITED);
	CHECK_EQ(info.si_status, 77);
	CHECK_EQ(info.si_uid, getuid());
	struct rusage usage = { .ru_maxrss = -1 };
	int status;
	CHECK_EQ(wait4(pid, &status, 0, &usage), pid);
	CHECK_EQ(status, EXITED(77));
	CHECK(usage.ru_maxrss > 0);
	CHECK_FAILS(waitpid(pid, &status, 0), ECHILD);
	CHECK_FAILS(waitid(P_ALL, 0, &info, WEXITED), ECHILD);
	CHECK_FAILS(waitid(P_ALL, 0, &info, 0), EINVAL);
}

static void stops(void)
{
	int status;
	siginfo_t info;
	pid_t pid = fork();

	if (!pid) {
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	CHECK_EQ(waitpid(pid, &status, WNOHANG), 0);
	CHECK_EQ(kill(pid, SIGCONT), 0);
	CHECK_EQ(waitid(P_PID, pid, &info, WCONTINUED), 0);
	CHECK_EQ(info.si_code, CLD_CONTINUED);
	CHECK_EQ(info.si_status, SIGCONT);
	CHECK_EQ(kill(pid, SIGSTOP), 0);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK_EQ(WSTOPSIG(status), SIGSTOP);
	CHECK_EQ(kill(pid, SIGCONT), 0);
	CHECK_EQ(kill(pid, SIGTERM), 0);
	CHECK_EQ(status_of(pid), SIGTERM);
}

static void ignored(void)
{
	on_signal(SIGCHLD, SIG_IGN, 0);
	pid_t pid = fork();
	if (!pid)
		_exit(1);
	CHECK_FAILS(waitpid(pid, NULL, 0), ECHILD);
}

static void orphan(void)
{
	int fds[2], seen[2];

	CHECK_EQ(pipe(fds), 0);
	pid_t middle = fork();
	if (!middle) {
		middle = getpid();
		if (fork())
			_exit(0);
		while (getppid() == middle)
			sleep_ms(1);
		seen[0] = getppid();
		seen[1] = raw0(SYS_getppid);
		write(fds[1], seen, sizeof(seen));
		_exit(0);
	}
	CHECK_EQ(status_of(middle), 0);
	CHECK_EQ(read(fds[0], seen, sizeof(seen)), sizeof(seen));
	CHECK_EQ(seen[0], seen[1]);
	CHECK(seen[0] != middle && seen[0] != getpid());
}

static void daemonise(void)
{
	int fds[2], seen[3];

	CHECK_EQ(pipe(fds), 0);
	pid_t pid = fork();
	if (!pid) {
		CHECK_EQ(setsid(), getpid());
		pid = fork();
		if (pid)
			_exit(0);
		seen[0] = getpid();
		seen[1] = getsid(0);
		seen[2] = getpgrp();
		write(fds[1], seen, sizeof(seen));
		_exit(0);
	}
	CHECK_EQ(status_of(pid), 0);
	CHECK_EQ(read(fds[0], seen, sizeof(seen)), sizeof(seen));
	CHECK_EQ(seen[1], pid);
	CHECK_EQ(seen[2], pid);
	CHECK(seen[0] != pid);
}

/* libc's daemon(): the child goes on after its parent has left. */
static void libc_daemon(void)
{
	int fds[2];
	char c = 0;

	CHECK_EQ(pipe(fds), 0);
	pid_t pid = fork();
	if (!pid) {
		CHECK_EQ(daemon(1, 1), 0);
		write(fds[1], "d", 1);
		_exit(0);
	}
	CHECK_EQ(status_of(pid), 0);
	CHECK_EQ(read(fds[0], &c, 1), 1);
	CHECK_EQ(c, 'd');
}

int main(void)
{
	exits();
	stops();
	IN_CHILD(ignored);
	for (int i = 0; i < 20; i++) {
		orphan();
		daemonise();
	}
	libc_daemon();
	return passed("wait");
}
