/*
 * A thread that was made after the handlers were set sleeps in a read: a signal whose handler
 * has SA_RESTART, or that is ignored, does not cut it short.  The signals that the inside uses
 * for itself are no others.
 */
#include <pthread.h>
#include "check.h"

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGSYS, SIGUSR1 };
static volatile sig_atomic_t handled;
static int ends[2];
static volatile pid_t reader;

static void handler(int sig)
{
	handled++;
}

static void *reads(void *unused)
{
	char byte;

	reader = gettid();
	CHECK_EQ(read(ends[0], &byte, 1), 1);
	return NULL;
}

static void set(int sig, void (*what)(int))
{
	struct sigaction action = { .sa_handler = what, .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(sig, &action, NULL), 0);
}

static void one(int sig, void (*what)(int), int times)
{
	pthread_t thread;

	handled = 0;
	reader = 0;
	set(sig, what);
	CHECK_EQ(pthread_create(&thread, NULL, reads, NULL), 0);
	while (!reader)
		sleep_ms(1);
	wait_asleep(reader);
	CHECK_EQ(pthread_kill(thread, sig), 0);
	for (int i = 0; i < 5000 && handled < times; i++)
		sleep_ms(1);
	wait_asleep(reader);
	CHECK_EQ(write(ends[1], "x", 1), 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(handled, times);
	set(sig, SIG_DFL);
}

int main(void)
{
	CHECK_EQ(pipe(ends), 0);
	for (size_t i = 0; i < COUNT(signals); i++) {
		one(signals[i], handler, 1);
		one(signals[i], SIG_IGN, 0);
	}
	return passed("restarts");
}
