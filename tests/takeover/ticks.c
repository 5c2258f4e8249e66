/* ticks.c: a thread that comes to each new second at several places, one right behind the other,
   and others that make calls all the time.  Says how many seconds there were, for a line each. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PLACES	4
#define THREADS	4

static void *call(void *none)
{
	for (;;) {
		getppid();
	}
	return none;
}

int main(void)
{
	struct timespec at[PLACES];
	struct pollfd in = { 0, POLLIN, 0 };
	pthread_t thread;
	long seconds = 0, last = 0;
	char line[16];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, call, NULL))
			return 1;
	for (;;) {
		for (int i = 0; i < PLACES; i++) {
			clock_gettime(CLOCK_REALTIME, &at[i]);
			getppid();
		}
		seconds += at[0].tv_sec != last;
		last = at[0].tv_sec;
		if (poll(&in, 1, 1) <= 0)
			continue;
		if (read(0, line, sizeof(line)) <= 0)
			return 0;
		printf("%ld\n", seconds);
		fflush(stdout);
	}
}
