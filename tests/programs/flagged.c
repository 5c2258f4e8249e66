/*
 * A handler sets a flag, and the program looks at it between two calls, on a busy
 * machine: a signal that waits for the next call must not be let in before it because
 * the thread had no processor for a while.  What is written tells what was seen.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define OTHERS	4
#define SIGNALS	200

static volatile sig_atomic_t flag;

static void note(int sig)
{
	(void)sig;
	flag = 1;
}

static pid_t other(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	while (!pid)
		;
	return pid;
}

/* The same where the signal comes while a clock is read. */
static void between_clocks(int null)
{
	struct timespec now;

	for (int seen = 0; seen < SIGNALS / 5; seen += flag, flag = 0) {
		CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
		CHECK(write(null, "no", flag ? 1 : 2) > 0);
	}
}

int main(void)
{
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction noted = { .sa_handler = note, .sa_flags = SA_RESTART };
	int null = open("/dev/null", O_WRONLY);
	pid_t others[OTHERS];

	CHECK(null >= 0 && !sigaction(SIGALRM, &noted, NULL));
	for (int i = 0; i < OTHERS; i++)
		others[i] = other();
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	for (int seen = 0; seen < SIGNALS;) {
		for (volatile int i = 0; i < 400000; i++)
			;
		CHECK(write(null, "no", flag ? 1 : 2) > 0);
		seen += flag;
		flag = 0;
	}
	between_clocks(null);
	CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	for (int i = 0; i < OTHERS; i++)
		CHECK(!kill(others[i], SIGKILL) && waitpid(others[i], NULL, 0) == others[i]);
	return passed("flagged");
}
