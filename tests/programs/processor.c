/*
 * A program that goes by the number of its processor: shares of a pool, say.  What it was
 * told is written to a pipe, so that twins are compared.
 */
#include <pthread.h>
#include <sched.h>
#include "check.h"

#define THREADS	24	/* one after the other */
#define LOOKS	100

static int pipe_fd[2];

static void *look(void *arg)
{
	char got;

	(void)arg;
	for (int i = 0; i < LOOKS; i++) {
		char cpu = (char)sched_getcpu();

		CHECK_EQ(write(pipe_fd[1], &cpu, 1), 1);
		CHECK_EQ(read(pipe_fd[0], &got, 1), 1);
		CHECK_EQ(got, cpu);
		if (i % 16 == 0)
			usleep(200);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	CHECK_EQ(pipe(pipe_fd), 0);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_create(&thread, NULL, look, NULL), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
	return passed("processor");
}
