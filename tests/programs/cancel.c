/*
 * pthread_cancel: deferred, in a blocking call and before one; asynchronous,
 * in a loop without calls; disabled; each time the clean-up handlers run.
 * glibc tells a call that has taken effect from one that has not by the
 * address at which the signal finds the thread.
 */
#include <pthread.h>
#include "check.h"

static int pipe_fds[2];
static volatile pid_t tid;
static volatile int cleaned;

static void clean(void *arg)
{
	CHECK_EQ(raw0(SYS_gettid), gettid());
	cleaned += (long)arg;
}

static void *in_read(void *arg)
{
	char c;

	pthread_cleanup_push(clean, (void *)1);
	pthread_cleanup_push(clean, (void *)2);
	tid = gettid();
	read(pipe_fds[0], &c, 1);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_pause(void *arg)
{
	pthread_cleanup_push(clean, (void *)3);
	tid = gettid();
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_sleep(void *arg)
{
	pthread_cleanup_push(clean, (void *)3);
	tid = gettid();
	sleep(1000);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_condition(void *arg)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(clean, (void *)3);
	tid = gettid();
	for (;;)
		pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_a_loop(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cleanup_push(clean, (void *)3);
	tid = gettid();
	for (;;)
		;
	pthread_cleanup_pop(0);
	return NULL;
}

static void *in_calls(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cleanup_push(clean, (void *)3);
	tid = gettid();
	for (;;)
		raw0(SYS_getppid);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel_one(void *(*fn)(void *), bool asleep)
{
	pthread_t thread;
	void *ret;

	tid = cleaned = 0;
	CHECK_EQ(pthread_create(&thread, NULL, fn, NULL), 0);
	while (!tid)
		sched_yield();
	if (asleep)
		wait_asleep(tid);
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK_EQ(pthread_join(thread, &ret), 0);
	CHECK(ret == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, 3);
}

static void *disabled(void *arg)
{
	char c;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	tid = gettid();
	CHECK_EQ(read(pipe_fds[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	return (void *)5;
}

static void not_when_disabled(void)
{
	pthread_t thread;
	void *ret;

	tid = 0;
	CHECK_EQ(pthread_create(&thread, NULL, disabled, NULL), 0);
	while (!tid)
		sched_yield();
	wait_asleep(tid);
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
	CHECK_EQ(pthread_join(thread, &ret), 0);
	CHECK_EQ(ret, 5);
}

/*
 * A byte that a cancelled reader took would be lost.  musl promises that none
 * is; glibc before 2.41 loses one now and then (its bug 12683).
 */
UNUSED static void *reader(void *arg)
{
	char c;
	long *got = arg;

	for (;;) {
		if (read(pipe_fds[0], &c, 1) == 1)
			++*got;
	}
	return NULL;
}

UNUSED static void nothing_lost(void)
{
	for (int round = 0; round < 200; round++) {
		pthread_t thread;
		long got = 0;
		char rest[16];
		CHECK_EQ(pthread_create(&thread, NULL, reader, &got), 0);
		CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
		for (int i = 0; i < round % 50 * 100; i++)
			__builtin_ia32_pause();
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		ssize_t n = got ? 0 : read(pipe_fds[0], rest, sizeof(rest));
		CHECK_EQ(got + n, 1);
	}
}

int main(void)
{
	CHECK_EQ(pipe(pipe_fds), 0);
	for (int i = 0; i < 20; i++) {
		cancel_one(in_read, i & 1);
		cancel_one(in_pause, i & 1);
		cancel_one(in_sleep, i & 1);
		cancel_one(in_condition, i & 1);
		cancel_one(in_a_loop, false);
		cancel_one(in_calls, false);
	}
	not_when_disabled();
#ifndef __GLIBC__
	nothing_lost();
#endif
	return passed("cancel");
}
