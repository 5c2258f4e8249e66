/*
 * A parent ends children by signals that a program dies of, as one ends a worker that hangs:
 * each dies of its signal, asleep or at work, or says its last words in a handler, and the
 * parent goes on.
 */
#include "check.h"

static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGKILL };

enum way { SLEEPS, COUNTS, HANDLES, RESETS, RETURNS, WAYS };

static int ready[2];

static void leave(int sig)
{
	CHECK_EQ(write(ready[1], "l", 1), 1);
	_exit(64 + sig);
}

static void say(int sig)
{
	CHECK_EQ(write(ready[1], "s", 1), 1);
}

static void child(enum way way, int sig)
{
	sigset_t none, one;

	sigemptyset(&one);
	if (way == HANDLES)
		on_signal(sig, leave, 0);
	if (way == RESETS)
		on_signal(sig, leave, SA_RESETHAND);
	if (way == RETURNS)
		on_signal(sig, say, 0);
	sigemptyset(&none);
	sigaddset(&one, sig);
	if (way == RETURNS)
		CHECK_EQ(sigprocmask(SIG_BLOCK, &one, NULL), 0);
	CHECK_EQ(write(ready[1], "r", 1), 1);
	while (way == COUNTS)
		raw0(SYS_getppid);
	sigsuspend(&none);
	_exit(way == RETURNS ? 3 : 1);
}

static int status_wanted(enum way way, int sig)
{
	if (way == RETURNS)
		return EXITED(3);
	return way == HANDLES || way == RESETS ? EXITED(64 + sig) : sig;
}

static void end_one(enum way way, int sig)
{
	pid_t pid = fork();
	char byte = 0;
	int status;

	if (!pid)
		child(way, sig);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	CHECK_EQ(byte, 'r');
	CHECK_EQ(kill(pid, sig), 0);
	status = status_of(pid);
	CHECK_EQ(status & ~0x80, status_wanted(way, sig));
	if (way == HANDLES || way == RESETS || way == RETURNS)
		CHECK_EQ(read(ready[0], &byte, 1), 1);
}

/* A server's life, while its children die. */
static void serve(int ends[2])
{
	char byte;

	CHECK_EQ(write(ends[1], "x", 1), 1);
	CHECK_EQ(read(ends[0], &byte, 1), 1);
}

int main(void)
{
	int ends[2];

	CHECK_EQ(pipe(ready), 0);
	CHECK_EQ(pipe(ends), 0);
	for (size_t i = 0; i < COUNT(signals); i++) {
		for (enum way way = SLEEPS; way < WAYS; way++) {
			if (signals[i] == SIGKILL && way > COUNTS)
				continue;
			end_one(way, signals[i]);
			serve(ends);
		}
	}
	return passed("child_ended");
}
