/*
 * A signal ends a call of the commonest kind, a read(2) of an empty pipe: it is made again, or
 * says EINTR, as the handler's flags want.  With the argument `once` the action is one of a fault
 * that holds for one time (SA_RESETHAND), as of programs that say something and die: what a leader
 * does there is asked of the monitor first.
 */
#include "check.h"

static int ends[2];

static void handler(int sig)
{
	CHECK_EQ(write(ends[1], "x", 1), 1);
}

/* A child, which sends it when we sleep. */
static pid_t sender(int sig)
{
	pid_t us = getpid(), child = fork();

	if (child)
		return child;
	wait_asleep(us);
	_exit(kill(us, sig) ? 1 : 0);
}

static void one(int sig, int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	pid_t child;
	char byte = 0;
	int status;

	CHECK_EQ(sigaction(sig, &action, NULL), 0);
	child = sender(sig);
	if (!(flags & SA_RESTART))
		CHECK_FAILS(read(ends[0], &byte, 1), EINTR);
	/* What the handler wrote. */
	CHECK_EQ(read(ends[0], &byte, 1), 1);
	CHECK_EQ(byte, 'x');
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	CHECK_EQ(pipe(ends), 0);
	if (argc > 1 && !strcmp(argv[1], "once")) {
		one(SIGSEGV, SA_RESETHAND | SA_RESTART);
		one(SIGBUS, SA_RESETHAND | SA_RESTART);
	} else {
		one(SIGUSR1, SA_RESTART);
		one(SIGUSR1, 0);
		one(SIGSEGV, SA_RESTART);
		one(SIGBUS, 0);
	}
	return passed("hot_signal");
}
