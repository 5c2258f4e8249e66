/*
 * A process forks behind a handler's end, while signals rain on its group, so that they come
 * to children as they are born: fork answers 0 there all the same.
 */
#include "check.h"

#define FORKS	400
#define PACE_US	40

static volatile sig_atomic_t drops;

static void drop(int sig)
{
	(void)sig;
	drops++;
}

static void handle(int sig, void (*handler)(int))
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(sig, &a, NULL), 0);
}

/* Until its parent, which it rains on, ends it. */
static pid_t rain(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	handle(SIGUSR1, SIG_IGN);
	while (getppid() != 1) {
		kill(0, SIGUSR1);
		usleep(PACE_US);
	}
	_exit(0);
}

static void fork_once(pid_t self)
{
	pid_t pid;
	int status;

	CHECK_EQ(raise(SIGUSR2), 0);
	pid = (pid_t)syscall(__NR_clone, SIGCHLD, 0, 0, 0, 0);
	if (syscall(__NR_getpid) != self)
		_exit(pid == 0 ? 42 : 1);
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 42);
}

int main(void)
{
	pid_t rains, self = getpid();
	int status;

	if (getpgrp() != self)
		CHECK_EQ(setpgid(0, 0), 0);
	handle(SIGUSR1, drop);
	handle(SIGUSR2, drop);
	rains = rain();
	CHECK(rains > 0);
	for (int i = 0; i < FORKS; i++)
		fork_once(self);
	CHECK_EQ(kill(rains, SIGKILL), 0);
	CHECK_EQ(waitpid(rains, &status, 0), rains);
	CHECK(drops > FORKS);
	return passed("fork_rain");
}
