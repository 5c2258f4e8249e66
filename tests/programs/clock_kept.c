/*
 * One thread keeps a clock's second in a plain variable, behind a library that reads the
 * clock more often; others take locks, look at it at once, in the middle of what they do,
 * or at its end, and say at last at which turn they saw it change.  A follower's must have
 * seen it at the same.  The place in the loop that reads the clock for the variable reads it
 * for the first time when a second is new.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SECONDS	2
#define READERS	3
#define WORK	3000

static volatile uint32_t now;
static pthread_mutex_t mutexes[READERS];
static char seen[READERS][256];

static __attribute__((noinline)) uint32_t second(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint32_t)ts.tv_sec;
}

/* The same, further down the stack. */
static __attribute__((noinline)) uint32_t first_second(void)
{
	volatile char room[4096];

	room[0] = 0;
	return second(CLOCK_MONOTONIC) + (uint32_t)room[0];
}

static void work(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
}

static void *reader(void *arg)
{
	long self = (long)arg;
	int before = WORK * (int)self / (READERS - 1), used = 0;
	uint32_t last = now;

	for (unsigned turn = 0, changes = 0; changes < SECONDS; turn++) {
		pthread_mutex_lock(&mutexes[self]);
		work(before);
		if (now != last) {
			last = now;
			changes++;
			used += snprintf(seen[self] + used, sizeof(seen[self]) - (size_t)used,
					 " %u", turn);
		}
		work(WORK - before);
		pthread_mutex_unlock(&mutexes[self]);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[READERS];
	int told = open("/dev/null", O_WRONLY);	/* each run says something else */

	now = first_second();
	for (long i = 0; i < READERS; i++) {
		pthread_mutex_init(&mutexes[i], NULL);
		pthread_create(&threads[i], NULL, reader, (void *)i);
	}
	for (uint32_t end = now + SECONDS; now <= end;) {
		poll(NULL, 0, 7);
		if (second(CLOCK_MONOTONIC_COARSE) != now)
			now = second(CLOCK_MONOTONIC);
	}
	for (int i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		dprintf(told, "%s\n", seen[i]);
	}
	dprintf(1, "clock_kept: ok\n");
	return 0;
}
