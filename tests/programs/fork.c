/*
 * fork: plain, nested, from a thread while others run, many in sequence,
 * with signals under way; memory is copied, results reach the parent.
 */
#include <pthread.h>
#include <sys/time.h>
#include "check.h"

static volatile int copied = 1;
static volatile sig_atomic_t ticks;
static volatile bool done;

static void in_sequence(void)
{
	for (int i = 0; i < 1000; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			copied = 2;
			_exit(getppid() && raw0(SYS_getpid) == getpid() ? i & 127
			      : 200);
		}
		CHECK_EQ(status_of(pid), EXITED(i & 127));
		CHECK_EQ(copied, 1);
	}
}

static void at_once(void)
{
	pid_t pids[50];

	for (int i = 0; i < 50; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(i);
	}
	for (int i = 0; i < 50; i++)
		CHECK_EQ(status_of(pids[i]), EXITED(i));
}

static int nest(int depth)
{
	if (!depth)
		return 0;
	pid_t pid = fork();
	if (!pid)
		_exit(nest(depth - 1) + 1);
	return WEXITSTATUS(status_of(pid));
}

static void *calls(void *arg)
{
	while (!done)
		CHECK_EQ(raw0(SYS_getpid), *(pid_t *)arg);
	return NULL;
}

static void *forks(void *arg)
{
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(getpid() == gettid() ? 5 : 1);
		CHECK_EQ(status_of(pid), EXITED(5));
	}
	return NULL;
}

static void from_threads(void)
{
	pthread_t busy, forkers[3];
	pid_t pid = getpid();

	CHECK_EQ(pthread_create(&busy, NULL, calls, &pid), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&forkers[i], NULL, forks, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(forkers[i], NULL);
	done = true;
	pthread_join(busy, NULL);
}

/* A child may start threads of its own, and fork again. */
static void threads_in_child(void)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, forks, NULL), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(nest(3), 3);
}

static void tick(int sig)
{
	ticks++;
}

static void under_signals(void)
{
	struct itimerval every = { { 0, 500 }, { 0, 500 } }, off = { 0 };

	on_signal(SIGALRM, tick, SA_RESTART);
	setitimer(ITIMER_REAL, &every, NULL);
	while (ticks < 300) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(raw0(SYS_getpid) == getpid() ? 3 : 1);
		CHECK_EQ(status_of(pid), EXITED(3));
	}
	setitimer(ITIMER_REAL, &off, NULL);
}

static int order[8], at;

static void prepare(void) { order[at++] = 1; }
static void parent(void) { order[at++] = 2; }
static void child(void) { order[at++] = 3; }

static void with_atfork(void)
{
	pthread_atfork(prepare, parent, child);
	pid_t pid = fork();
	if (!pid)
		_exit(at == 2 && order[0] == 1 && order[1] == 3 ? 0 : 1);
	CHECK_EQ(status_of(pid), 0);
	CHECK(at == 2 && order[1] == 2);
}

int main(void)
{
	in_sequence();
	at_once();
	CHECK_EQ(nest(10), 10);
	from_threads();
	IN_CHILD(threads_in_child);
	under_signals();
	with_atfork();
	return passed("fork");
}
