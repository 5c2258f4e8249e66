/*
 * A child that shares its parent's memory (clone with CLONE_VM) reads a clock, and is killed as
 * that comes to a new second: whom others would have waited for is gone then, and they go on.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/check.h"

#define ROUNDS	8
#define STEP_NS	400000	/* later in each is it killed */

static char stack[1 << 14] __attribute__((aligned(16)));

static void work(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

static int guest(void *arg)
{
	struct timespec now;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &now);
		work(100000);
	}
	return arg != NULL;
}

/* Tells nothing for a while: it has to be waited for at a new second. */
static void *computes(void *arg)
{
	for (;;) {
		work(20000000);
		syscall(SYS_getppid);
	}
	return arg;
}

/* In a process of its own: the first such wait of one is its longest. */
static void round_at(unsigned round)
{
	struct timespec at;
	pthread_t thread;
	pid_t pid;

	CHECK(!pthread_create(&thread, NULL, computes, NULL));
	pid = clone(guest, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	CHECK(pid > 0);
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec++;
	at.tv_nsec = (round + 1) * STEP_NS;
	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL);
	CHECK(!kill(pid, SIGKILL));
	CHECK(waitpid(pid, NULL, 0) == pid);
	exit(0);
}

int main(void)
{
	int status;
	pid_t pid;

	for (unsigned i = 0; i < ROUNDS; i++) {
		pid = fork();
		if (!pid)
			round_at(i);
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	return passed("guest_killed");
}
