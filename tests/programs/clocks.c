/*
 * Clocks that libc reads without a call: by every function and every way to ask, by threads
 * beside each other, while signals come whose handlers read clocks, too; and what no place
 * is given for.  What they say is near to what the kernel says, and never behind what they said.
 *
 * ld: -lpthread
 */
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include "check.h"

#define THREADS		3
#define ROUNDS		1000

#define SIGNALS		200

static volatile sig_atomic_t handled;

static int64_t ns_of(struct timespec t)
{
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int64_t now(clockid_t clock)
{
	struct timespec t;

	CHECK(!clock_gettime(clock, &t));
	return ns_of(t);
}

static void handler(int sig)
{
	struct timeval v;

	(void)sig;
	CHECK(now(CLOCK_MONOTONIC) > 0 && !gettimeofday(&v, NULL) && time(NULL) >= v.tv_sec - 1);
	handled++;
}

static const clockid_t clocks[] = {
	CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
	CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI, CLOCK_PROCESS_CPUTIME_ID,
	CLOCK_THREAD_CPUTIME_ID,
};
#define CLOCKS	COUNT(clocks)

/* Callee-saved registers, and the stack, are as they were. */
static int64_t kept_beside(int64_t a, int64_t b, int64_t c)
{
	int64_t x = a * 3, y = b * 5, z = c * 7;
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &t));
	return x + y + z + (ns_of(t) > 0);
}

static void *reader(void *what)
{
	int64_t last[CLOCKS] = { 0 }, next;
	struct timeval v;
	time_t seconds, told;

	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned k = 0; k < CLOCKS; k++) {
			next = now(clocks[k]);
			CHECK(next >= last[k]);
			last[k] = next;
		}
		CHECK(!gettimeofday(&v, NULL));
		seconds = time(&told);
		CHECK(seconds == told && seconds >= v.tv_sec - 1 && seconds <= time(NULL));
		CHECK(kept_beside(i, i, i) == 15ll * i + 1);
	}
	return what;
}

static void *sender(void *to)
{
	struct timespec pause = { 0, 200000 };

	for (int i = 0; i < SIGNALS; i++) {
		pthread_kill(*(pthread_t *)to, SIGUSR1);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Near to the kernel's own, which has other ways to say it. */
static void agree(clockid_t clock)
{
	struct timespec before, after;
	int64_t at;

	CHECK(!syscall(SYS_clock_gettime, clock, &before));
	at = now(clock);
	CHECK(!syscall(SYS_clock_gettime, clock, &after));
	CHECK(at >= ns_of(before) - 20000000 && at <= ns_of(after));
}

static void asked_badly(void)
{
	struct timezone zone = { 1, 1 };
	struct timespec t = { 7, 7 };
	struct timeval v = { 0, 0 }, *volatile nowhere = NULL;

	CHECK(clock_gettime(77, &t) == -1 && errno == EINVAL && t.tv_sec == 7);
	CHECK(clock_gettime(-1000000, &t) == -1 && errno == EINVAL);
	CHECK(!gettimeofday(&v, &zone) && v.tv_sec);
	CHECK(!gettimeofday(nowhere, NULL));
	CHECK(time(NULL) >= v.tv_sec - 1);
}

int main(void)
{
	pthread_t thread[THREADS], self = pthread_self(), sends;
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };

	for (unsigned k = 0; k < CLOCKS; k++)
		agree(clocks[k]);
	asked_badly();
	reader(NULL);
	CHECK(!sigaction(SIGUSR1, &act, NULL));
	CHECK(!pthread_create(&sends, NULL, sender, &self));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, reader, NULL));
	for (int i = 0; i < 4; i++)
		reader(NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(!pthread_join(sends, NULL));
	CHECK(handled > 0);
	asked_badly();
	return passed("clocks");
}
