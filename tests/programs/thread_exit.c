/*
 * The ways in which a process with threads ends: exit_group by another
 * thread while the rest sleep in calls or spin; the main thread leaves first
 * and the process goes on; the last thread ends it with 0.
 */
#include <pthread.h>
#include "check.h"

static pid_t main_tid;

static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static void *caller(void *arg)
{
	for (;;)
		raw0(SYS_getppid);
	return NULL;
}

static void *spinner(void *arg)
{
	for (;;)
		;
	return NULL;
}

static void *leaver(void *arg)
{
	wait_asleep(main_tid);
	raw3(SYS_exit_group, 42, 0, 0);
	return NULL;
}

static void start(void *(*fn)(void *))
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, fn, NULL), 0);
}

static void exit_group_by_another(void)
{
	main_tid = gettid();
	start(sleeper);
	start(caller);
	start(spinner);
	start(leaver);
	pause();
}

static void exit_group_by_main(void)
{
	start(sleeper);
	start(caller);
	start(spinner);
	exit(43);
}

static void *goes_on(void *arg)
{
	char path[64], line[512] = "";

	for (int i = 0; i < 2000 && !strstr(line, "Z (zombie)"); i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/status", getpid(),
			 getpid());
		FILE *status = fopen(path, "r");
		CHECK(status);
		fread(line, 1, sizeof(line) - 1, status);
		fclose(status);
		sleep_ms(1);
	}
	CHECK(strstr(line, "Z (zombie)"));
	pid_t pid = fork();
	if (!pid)
		_exit(7);
	CHECK_EQ(status_of(pid), EXITED(7));
	if (arg)
		exit(44);
	return NULL;
}

static void main_leaves(long then_exit)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, goes_on, (void *)then_exit), 0);
	pthread_exit(NULL);
}

static void main_leaves_then_exit(void)
{
	main_leaves(1);
}

static void main_leaves_then_last(void)
{
	main_leaves(0);
}

static void raw_exit_of_last(void)
{
	raw3(SYS_exit, 45, 0, 0);
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(child_status(exit_group_by_another), EXITED(42));
		CHECK_EQ(child_status(exit_group_by_main), EXITED(43));
	}
	CHECK_EQ(child_status(main_leaves_then_exit), EXITED(44));
	CHECK_EQ(child_status(main_leaves_then_last), 0);
	CHECK_EQ(child_status(raw_exit_of_last), EXITED(45));
	return passed("thread_exit");
}
