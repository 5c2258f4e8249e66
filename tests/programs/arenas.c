/*
 * Threads that all want memory at once: libc makes arenas for them and looks how many
 * processors there are, and whether memory may be overcommitted, in whichever thread
 * comes to it.  What they say of their work goes through a pipe.
 */
#include <pthread.h>

#include "check.h"

#define THREADS	16
#define ROUNDS	10
#define BLOCKS	40

static pthread_barrier_t together;

static void *work(void *arg)
{
	char *block[BLOCKS], sum = 0, back;
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BLOCKS; i++) {
			block[i] = malloc(1000u + (unsigned)i * 2500);
			memset(block[i], i + round, 1000);
			sum = (char)(sum + block[i][i]);
		}
		pthread_barrier_wait(&together);
		for (int i = BLOCKS; i--;)
			free(block[i]);
		CHECK_EQ(write(fd[1], &sum, 1), 1);
		CHECK_EQ(read(fd[0], &back, 1), 1);
		CHECK_EQ(back, sum);
	}
	close(fd[0]);
	close(fd[1]);
	return arg;
}

int main(void)
{
	pthread_t id[THREADS];

	CHECK_EQ(pthread_barrier_init(&together, NULL, THREADS), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, work, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	return passed("arenas");
}
