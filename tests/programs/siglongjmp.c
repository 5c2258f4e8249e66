/*
 * Leaving a handler by siglongjmp, many times: from plain code, from a raise,
 * out of a call that slept, from the alternate stack, from a fault; and by
 * swapcontext and setcontext.  Nothing that watches calls may count on the
 * handler's return.
 */
#include <pthread.h>
#include <setjmp.h>
#include <sys/time.h>
#include <ucontext.h>
#include "check.h"

static sigjmp_buf back;
static ucontext_t main_context, other_context;
static char stack[64 * 1024], alternate[64 * 1024];
static volatile int count, pipe_fds[2];

static void jump(int sig)
{
	CHECK_EQ(raw0(SYS_getpid), getpid());
	siglongjmp(back, sig);
}

static bool masked(int sig)
{
	sigset_t set;

	sigprocmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, sig);
}

static void from_raise(int flags)
{
	on_signal(SIGUSR1, jump, flags);
	for (count = 0; count < 5000; count++) {
		if (!sigsetjmp(back, 1)) {
			raise(SIGUSR1);
			CHECK(!"reached");
		}
		CHECK(!masked(SIGUSR1));
	}
}

static void from_blocking_call(void)
{
	struct itimerval soon = { { 0, 0 }, { 0, 300 } };
	char c;

	on_signal(SIGALRM, jump, 0);
	for (count = 0; count < 500; count++)
		if (!sigsetjmp(back, 1)) {
			setitimer(ITIMER_REAL, &soon, NULL);
			read(pipe_fds[0], &c, 1);
			CHECK(!"reached");
		}
	CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
	CHECK_EQ(read(pipe_fds[0], &c, 1), 1);
}

static void from_anywhere(void)
{
	struct itimerval soon = { { 0, 0 }, { 0, 100 } };

	for (count = 0; count < 1000; count++)
		if (!sigsetjmp(back, 1)) {
			setitimer(ITIMER_REAL, &soon, NULL);
			for (;;)
				if (raw0(SYS_getppid) <= 0)
					_exit(1);
		}
}

static void from_fault(void)
{
	on_signal(SIGSEGV, jump, SA_ONSTACK);
	for (count = 0; count < 2000; count++)
		if (!sigsetjmp(back, 1)) {
			*(volatile int *)8 = 1;
			CHECK(!"reached");
		}
	on_signal(SIGSEGV, SIG_DFL, 0);
}

/* The mask is not restored: the handler's stays. */
static void without_mask(void)
{
	sigset_t none;

	on_signal(SIGUSR1, jump, 0);
	if (!sigsetjmp(back, 0))
		raise(SIGUSR1);
	CHECK(masked(SIGUSR1));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void to_other(int sig)
{
	count++;
	swapcontext(&other_context, &main_context);
	count++;
}

static void raises(void)
{
	for (;;) {
		raise(SIGUSR2);
		count++;
	}
}

static void by_swapcontext(void)
{
	on_signal(SIGUSR2, to_other, 0);
	CHECK_EQ(getcontext(&other_context), 0);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	makecontext(&other_context, raises, 0);
	count = 0;
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(swapcontext(&main_context, &other_context), 0);
		CHECK_EQ(count, 1 + 3 * i);
		CHECK(!masked(SIGUSR2));
	}
}

int main(void)
{
	stack_t ss = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	int fds[2];

	CHECK_EQ(pipe(fds), 0);
	pipe_fds[0] = fds[0];
	pipe_fds[1] = fds[1];
	CHECK_EQ(sigaltstack(&ss, NULL), 0);
	from_raise(0);
	from_raise(SA_ONSTACK);
	from_raise(SA_NODEFER);
	from_blocking_call();
	from_anywhere();
	from_fault();
	without_mask();
	by_swapcontext();
	return passed("siglongjmp");
}
