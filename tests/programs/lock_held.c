/*
 * A keeper waits for a condition, workers report to main.  Without the argument, as another
 * release might, the keeper takes a lock more under its own, workers take the keeper's
 * before they report, and main waits for them: a follower's keeper waits there for what its
 * leader's, who sleeps, will tell, and all others wait for the keeper.  All end when the
 * input does.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"

#define WORKERS	4

static pthread_mutex_t keepers = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t one_more = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t reports = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;
static pthread_cond_t reported = PTHREAD_COND_INITIALIZER;
static bool fewer, over;
static int count;

static void *keep(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&keepers);
	if (!fewer) {
		pthread_mutex_lock(&one_more);
		pthread_mutex_unlock(&one_more);
	}
	while (!over)
		pthread_cond_wait(&wanted, &keepers);
	pthread_mutex_unlock(&keepers);
	return NULL;
}

static void *work(void *unused)
{
	(void)unused;
	if (!fewer) {
		pthread_mutex_lock(&keepers);
		pthread_mutex_unlock(&keepers);
	}
	pthread_mutex_lock(&reports);
	count++;
	pthread_cond_signal(&reported);
	pthread_mutex_unlock(&reports);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t keeper, worker[WORKERS];
	char c;

	(void)argv;
	fewer = argc > 1;
	CHECK(!pthread_create(&keeper, NULL, keep, NULL));
	usleep(100000);		/* it has the lock, or waits */
	for (int i = 0; i < WORKERS; i++)
		CHECK(!pthread_create(&worker[i], NULL, work, NULL));
	CHECK(read(0, &c, 1) == 1);	/* by then the leader's have reported */
	if (!fewer) {
		pthread_mutex_lock(&reports);
		while (count < WORKERS)
			pthread_cond_wait(&reported, &reports);
		pthread_mutex_unlock(&reports);
	}
	CHECK(write(1, "reported\n", 9) == 9);
	while (read(0, &c, 1) > 0)
		;
	pthread_mutex_lock(&keepers);
	over = true;
	pthread_cond_signal(&wanted);
	pthread_mutex_unlock(&keepers);
	for (int i = 0; i < WORKERS; i++)
		CHECK(!pthread_join(worker[i], NULL));
	CHECK(!pthread_join(keeper, NULL));
	return passed("lock_held");
}
