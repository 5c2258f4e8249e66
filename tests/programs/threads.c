/*
 * Threads in great number: waves of joined ones with the smallest stack,
 * detached ones, thread variables, and system calls of each at the same time.
 */
#include <pthread.h>
#include <semaphore.h>
#include "check.h"

#define WAVE 200
#define WAVES 50
#define DETACHED 300

static __thread long own = 1;
static pthread_attr_t small;
static sem_t gone;

static void *joined(void *arg)
{
	long n = (long)arg;

	CHECK_EQ(own, 1);
	own = n;
	CHECK(gettid() != getpid());
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(raw0(SYS_gettid), gettid());
		CHECK_EQ(raw0(SYS_getpid), getpid());
		sched_yield();
	}
	CHECK_EQ(own, n);
	if (n & 1)
		pthread_exit((void *)(n * 3));
	return (void *)(n * 3);
}

static void wave(void)
{
	pthread_t threads[WAVE];

	for (long i = 0; i < WAVE; i++)
		CHECK_EQ(pthread_create(&threads[i], &small, joined, (void *)i), 0);
	for (long i = 0; i < WAVE; i++) {
		void *ret;
		CHECK_EQ(pthread_join(threads[i], &ret), 0);
		CHECK_EQ(ret, i * 3);
	}
}

static void *detached(void *arg)
{
	if ((long)arg & 1)
		CHECK_EQ(pthread_detach(pthread_self()), 0);
	CHECK_EQ(raw0(SYS_gettid), gettid());
	sem_post(&gone);
	return NULL;
}

static void detached_ones(void)
{
	pthread_attr_t attr = small;
	pthread_t thread;

	for (long i = 0; i < DETACHED; i++) {
		pthread_attr_setdetachstate(&attr, i & 1 ? PTHREAD_CREATE_JOINABLE
					    : PTHREAD_CREATE_DETACHED);
		CHECK_EQ(pthread_create(&thread, &attr, detached, (void *)i), 0);
	}
	for (int i = 0; i < DETACHED; i++)
		CHECK_EQ(sem_wait(&gone), 0);
}

static int threads_now(void)
{
	char line[256];
	int n = 0;
	FILE *status = fopen("/proc/self/status", "r");

	while (fgets(line, sizeof(line), status))
		sscanf(line, "Threads: %d", &n);
	fclose(status);
	return n;
}

int main(void)
{
	CHECK_EQ(pthread_attr_init(&small), 0);
	CHECK_EQ(pthread_attr_setstacksize(&small, 16384), 0);
	CHECK_EQ(sem_init(&gone, 0, 0), 0);
	for (int i = 0; i < WAVES; i++)
		wave();
	CHECK_EQ(own, 1);
	detached_ones();
	for (int i = 0; i < 1000 && threads_now() > 1; i++)
		sleep_ms(5);
	CHECK_EQ(threads_now(), 1);
	return passed("threads");
}
