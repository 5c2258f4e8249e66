/*
 * vfork: the child runs on the parent's memory and stack, and the parent
 * waits until it has left or replaced itself.  The parent's locals, its
 * return path and its handlers are intact afterwards.
 */
#include <pthread.h>
#include "check.h"

static volatile int shared;

__attribute__((noinline)) static pid_t child_leaves(int code)
{
	volatile long guard[4] = { 1, 2, 3, code };
	pid_t pid = vfork();

	CHECK(pid >= 0);
	if (!pid) {
		shared = getpid();
		_exit(code);
	}
	CHECK_EQ(shared, pid);
	CHECK(guard[0] == 1 && guard[1] == 2 && guard[2] == 3);
	CHECK_EQ(guard[3], code);
	return pid;
}

__attribute__((noinline)) static pid_t child_execs(const char *path)
{
	volatile long guard[4] = { 5, 6, 7, 8 };
	pid_t pid = vfork();

	CHECK(pid >= 0);
	if (!pid) {
		shared = 17;
		execl(path, "die", "exit", "23", NULL);
		_exit(99);
	}
	CHECK_EQ(shared, 17);
	CHECK(guard[0] == 5 && guard[1] == 6 && guard[2] == 7 && guard[3] == 8);
	return pid;
}

static void failing_exec(void)
{
	pid_t pid = vfork();

	if (!pid) {
		execl("/none", "none", NULL);
		shared = errno;
		_exit(4);
	}
	CHECK_EQ(status_of(pid), EXITED(4));
	CHECK_EQ(shared, ENOENT);
}

static void *in_thread(void *path)
{
	for (int i = 0; i < 50; i++) {
		pid_t pid = vfork();
		if (!pid)
			_exit(31);
		CHECK_EQ(status_of(pid), EXITED(31));
		pid = vfork();
		if (!pid) {
			execl(path, "die", "exit", "23", NULL);
			_exit(99);
		}
		CHECK_EQ(status_of(pid), EXITED(23));
	}
	return NULL;
}

/* The child makes many calls before it leaves; a signal ends it. */
static void busy_child(void)
{
	pid_t pid = vfork();

	if (!pid) {
		for (int i = 0; i < 1000; i++)
			raw0(SYS_getppid);
		raise(SIGKILL);
		_exit(1);
	}
	CHECK_EQ(status_of(pid), SIGKILL);
}

static void waits(void)
{
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
	pid_t pid = vfork();
	if (!pid) {
		struct timespec t = { 0, 50000000 };
		raw3(SYS_nanosleep, &t, 0, 0);
		_exit(0);
	}
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000 +
	      (after.tv_nsec - before.tv_nsec) / 1000000 >= 49);
	CHECK_EQ(status_of(pid), 0);
}

int main(void)
{
	const char *path = beside("die");
	pthread_t threads[3];

	for (int i = 0; i < 300; i++)
		CHECK_EQ(status_of(child_leaves(i & 255)), EXITED(i & 255));
	for (int i = 0; i < 50; i++)
		CHECK_EQ(status_of(child_execs(path)), EXITED(23));
	failing_exec();
	busy_child();
	waits();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, in_thread, (void *)path), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return passed("vfork");
}
