/*
 * A signal that a handler sends its own thread while it is blocked comes when the handler is
 * over, and before the program has done anything else: the same one, another, each again and
 * again, by each call that sends; with the registers and the mask that the frame had.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/programs/check.h"

#define AGAIN	2000

static volatile int step, times, seen_at, alone = 1;
static volatile double kept = 1.5;

static void say(const char *what, int n)
{
	printf("%s %d\n", what, n);
	fflush(stdout);
}

/* What a handler that has come at last finds: nothing between. */
static void same(int sig)
{
	CHECK(!step);
	step = 1;
	if (!times++)
		CHECK(!raise(sig));
	step = 0;
}

static void other(int sig)
{
	(void)sig;
	seen_at = ++step;
}

static void first(int sig)
{
	(void)sig;
	CHECK(!(alone ? kill(getpid(), SIGUSR2) : raise(SIGUSR2)) && !seen_at);
	CHECK(!syscall(SYS_tgkill, getpid(), gettid(), SIGRTMIN + 1) && !seen_at);
	step = 10;
}

static void again(int sig)
{
	kept += 1;
	if (++times < AGAIN)
		CHECK(!raise(sig));
}

static void on(int sig, void (*handler)(int sig), int blocked, int flags)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = flags };

	sigemptyset(&a.sa_mask);
	if (blocked) {
		sigaddset(&a.sa_mask, blocked);
		sigaddset(&a.sa_mask, SIGRTMIN + 1);
	}
	CHECK(!sigaction(sig, &a, NULL));
}

/* Of those that mve hides, and waited for with no call that followers are told of. */
static void hidden(int sig)
{
	times = step = 0;
	on(sig, same, 0, 0);
	CHECK(!raise(sig));
	while (times != 2)
		sched_yield();
	say("hidden", sig);
}

static void all(void)
{
	char *stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t alt = { .ss_sp = stack, .ss_size = 1 << 16 };
	volatile double here = 2.25;
	sigset_t now;

	CHECK(stack != MAP_FAILED && !sigaltstack(&alt, NULL));
	times = step = 0;
	on(SIGUSR1, same, 0, 0);
	CHECK(!raise(SIGUSR1));
	CHECK_EQ(times, 2);
	say("same", times);
	step = seen_at = 0;
	on(SIGUSR1, first, SIGUSR2, 0);
	on(SIGUSR2, other, 0, 0);
	on(SIGRTMIN + 1, other, 0, SA_ONSTACK);
	CHECK(!raise(SIGUSR1));
	CHECK_EQ(seen_at, 12);
	say("others", step);
	times = 0;
	on(SIGUSR1, again, 0, SA_ONSTACK);
	CHECK(!raise(SIGUSR1));
	CHECK_EQ(times, AGAIN);
	CHECK(here == 2.25);
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &now) && !sigismember(&now, SIGUSR1));
	say("again", (int)kept);
	hidden(SIGSYS);
	hidden(SIGBUS);
}

static void *thread(void *arg)
{
	all();
	return arg;
}

int main(void)
{
	pthread_t t;

	all();
	alone = 0;
	CHECK(!pthread_create(&t, NULL, thread, NULL));
	CHECK(!pthread_join(t, NULL));
	return passed("owed");
}
