/*
 * Jobs for a worker, in order, each a descriptor that it closes.  With an argument
 * the worker reads the clock before it takes the lock, as an allocator may do by
 * chance: what a follower without the argument leaves out stands unread before all
 * that it does.  Without the argument it begins late: all that its leader does is
 * told already.  All end when the input does.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define JOBS	200
#define OPENS	5	/* beside each job: descriptors that the worker never sees */
#define ROUNDS	400	/* of the lock; more than can be answered before their turn */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static int jobs[JOBS], made;
static bool reads_clock;
static char came[2 * ROUNDS];
static int comers;

static void come(char who)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		came[comers++] = who;
		pthread_mutex_unlock(&mutex);
	}
}

static void *work(void *unused)
{
	struct timespec now;

	(void)unused;
	for (int done = 0; done < JOBS; done++) {
		for (int i = 0; reads_clock && i < 4; i++)
			CHECK(!clock_gettime(CLOCK_MONOTONIC_COARSE, &now));
		pthread_mutex_lock(&mutex);
		while (made == done)
			pthread_cond_wait(&given, &mutex);
		pthread_mutex_unlock(&mutex);
		CHECK(!close(jobs[done]));
	}
	if (reads_clock)
		CHECK(!clock_gettime(CLOCK_MONOTONIC_COARSE, &now));
	come('w');
	return NULL;
}

static int null_open(void)
{
	int fd = open("/dev/null", O_RDONLY);

	CHECK(fd >= 0);
	return fd;
}

int main(int argc, char **argv)
{
	pthread_t worker;

	(void)argv;
	reads_clock = argc > 1;
	for (volatile long n = reads_clock ? 0 : 100000000; n; n--)
		;
	CHECK(!pthread_create(&worker, NULL, work, NULL));
	for (int i = 0; i < JOBS; i++) {
		int fd = null_open();

		for (int n = 0; n < OPENS; n++)
			CHECK(!close(null_open()));
		pthread_mutex_lock(&mutex);
		jobs[made++] = fd;
		pthread_cond_signal(&given);
		pthread_mutex_unlock(&mutex);
		if (i % 20 == 19)
			usleep(10000);
	}
	come('m');
	CHECK(!pthread_join(worker, NULL));
	CHECK(write(STDERR_FILENO, came, sizeof(came)) == sizeof(came));
	CHECK(getchar() == EOF);
	return passed("clock_aside");
}
