/*
 * Threads that join one another all the time.  With --one-at-a-time whoever wants to work next
 * waits for the end of who worked by the same word as who joins it, and may be woken in its place.
 */
#include <pthread.h>

#include "check.h"

#define THREADS	6
#define ROUNDS	400

static void *end(void *none)
{
	return none;
}

static void *join(void *none)
{
	pthread_t thread;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_create(&thread, NULL, end, NULL), 0);
		if (i % 3 == 0)
			sched_yield();
		CHECK_EQ(pthread_join(thread, NULL), 0);
		CHECK(getppid() > 0);
	}
	return none;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, join, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	return passed("joined");
}
