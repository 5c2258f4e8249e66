/*
 * A server with a heap of so many MB, all of it touched: perf/bench has it forked, to hold a
 * twin's pause against that.
 *
 *	heap MB [THREADS]	so many more, which sleep, in turns
 *	in	fork: a child is made, and ends at once; another word: nothing is done
 *	out	us that fork(2) took in the parent; or 0
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE	(1 << 20)

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double fork_us(void)
{
	double from = now_us(), took;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	took = now_us() - from;
	waitpid(pid, NULL, 0);
	return pid < 0 ? -1 : took;
}

static void *sleeper(void *arg)
{
	for (;;)
		usleep(1000);
	return arg;
}

static int sleepers_begin(long n)
{
	pthread_t thread;
	int result = 0;

	while (n-- > 0 && !result)
		result = pthread_create(&thread, NULL, sleeper, NULL);
	return result;
}

int main(int argc, char **argv)
{
	long mb = argc > 1 ? atol(argv[1]) : 0;
	char line[40], *piece;

	mallopt(M_MMAP_THRESHOLD, 4 * PIECE);
	for (long i = 0; i < mb; i++) {
		piece = malloc(PIECE);
		if (!piece)
			return 3;
		memset(piece, (int)i + 1, PIECE);
	}
	if (sleepers_begin(argc > 2 ? atol(argv[2]) : 0))
		return 3;
	while (fgets(line, sizeof(line), stdin)) {
		printf("%.1f\n", strcmp(line, "fork\n") ? 0 : fork_us());
		fflush(stdout);
	}
	return 0;
}
