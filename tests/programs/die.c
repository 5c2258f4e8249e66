/*
 * Ends as its arguments say: `die exit N`, `die signal N`, `die abort`,
 * `die thread N` (the signal hits another thread), `die group N` (exit_group
 * by another thread).  A status of 0 says so first.
 */
#include <pthread.h>
#include <sys/resource.h>
#include "check.h"

static void *raise_it(void *number)
{
	raise((long)number);
	return NULL;
}

static void *leave(void *number)
{
	_exit((long)number);
}

static void in_thread(void *(*fn)(void *), long number)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, fn, (void *)number), 0);
	pthread_join(thread, NULL);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "exit";
	int number = argc > 2 ? atoi(argv[2]) : 0;
	struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	printf("die: %s %d\n", how, number);
	if (!strcmp(how, "exit") && !number)
		printf("die: ok\n");
	fflush(stdout);
	if (!strcmp(how, "signal"))
		raise(number);
	else if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "thread"))
		in_thread(raise_it, number);
	else if (!strcmp(how, "group"))
		in_thread(leave, number);
	else if (!strcmp(how, "fault"))
		*(volatile char *)8 = 1;
	return number;
}
