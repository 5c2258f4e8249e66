/*
 * A process with so many threads, all of them asleep, for the memory that mve
 * adds: says "ready" when they are there, and ends when its input does.
 *
 *	idle THREADS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t there;

static void *sleeper(void *arg)
{
	pthread_barrier_wait(&there);
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	const int threads = argc == 2 ? atoi(argv[1]) : 0;
	pthread_attr_t small;
	pthread_t thread;

	if (threads < 1)
		return 2;
	pthread_barrier_init(&there, NULL, (unsigned int)threads);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 1 << 16);
	for (int i = 1; i < threads; i++)
		if (pthread_create(&thread, &small, sleeper, NULL))
			return 3;
	pthread_barrier_wait(&there);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
