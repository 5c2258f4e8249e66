/*
 * Two threads execute a program at the same time, which ignores SIGSYS, and then its first
 * thread alone one that does not, again and again: whoever came first has its program, and
 * nothing of the other's is left for the next.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "check.h"

#define ROUNDS	60

static char number[16], *words[3] = { NULL, number, NULL };
static pthread_barrier_t both;

static void *other(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&both);
	execv("/proc/self/exe", words);
	return NULL;
}

static bool ignores(void)
{
	struct sigaction now;

	return !sigaction(SIGSYS, NULL, &now) && now.sa_handler == SIG_IGN;
}

int main(int argc, char **argv)
{
	int round = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t thread;

	CHECK_EQ(ignores(), round % 2);
	if (round == ROUNDS)
		return passed("exec_race");
	words[0] = argv[0];
	snprintf(number, sizeof(number), "%d", round + 1);
	signal(SIGSYS, round % 2 ? SIG_DFL : SIG_IGN);
	if (round % 2)
		execv("/proc/self/exe", words);
	pthread_barrier_init(&both, NULL, 2);
	CHECK(!pthread_create(&thread, NULL, other, NULL));
	pthread_barrier_wait(&both);
	execv("/proc/self/exe", words);
	pthread_join(thread, NULL);
	return 1;
}
