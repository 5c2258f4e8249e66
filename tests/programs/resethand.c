/*
 * What sigaction tells and takes: within a handler for one time the action is the default
 * with the flags and mask that were given; unknown flags are not kept; what is wrong is
 * refused in the kernel's order; ignoring drops what waits.
 */
#include "check.h"

struct kernel_action {
	unsigned long handler, flags, restorer, mask;
};

static struct kernel_action within;
static volatile sig_atomic_t handled;

static long action(int sig, const void *new, void *old)
{
	return raw4(SYS_rt_sigaction, sig, new, old, 8);
}

static void once(int sig)
{
	handled++;
	CHECK_EQ(action(sig, NULL, &within), 0);
}

static void count(int sig)
{
	handled++;
}

static void within_once(void)
{
	struct sigaction sa = { .sa_handler = once, .sa_flags = SA_RESETHAND | SA_RESTART };
	static const int signals[] = { SIGUSR1, SIGSEGV, SIGSYS, SIGILL, 40 };
	struct kernel_action before;

	sigaddset(&sa.sa_mask, SIGHUP);
	for (size_t i = 0; i < COUNT(signals); i++) {
		CHECK_EQ(sigaction(signals[i], &sa, NULL), 0);
		CHECK_EQ(action(signals[i], NULL, &before), 0);
		handled = 0;
		raise(signals[i]);
		CHECK_EQ(handled, 1);
		CHECK_EQ(within.handler, 0);
		CHECK_EQ(within.flags, before.flags);
		CHECK_EQ(within.restorer, before.restorer);
		CHECK_EQ(within.mask, 1 << (SIGHUP - 1));
	}
}

/* Set again within the handler, it stays. */
static void set_again(int sig)
{
	handled++;
	on_signal(sig, set_again, SA_RESETHAND);
}

static void again(void)
{
	handled = 0;
	on_signal(SIGUSR1, set_again, SA_RESETHAND);
	for (int i = 0; i < 10; i++)
		raise(SIGUSR1);
	CHECK_EQ(handled, 10);
}

static void twice(void)
{
	on_signal(SIGUSR1, count, SA_RESETHAND);
	raise(SIGUSR1);
	raise(SIGUSR1);
}

static void flags(void)
{
	struct kernel_action a = { (unsigned long)count, ~0ul, 0, ~0ul }, got;

	CHECK_EQ(action(SIGUSR2, &a, NULL), 0);
	CHECK_EQ(action(SIGUSR2, NULL, &got), 0);
	CHECK_EQ(got.flags, 0xdc000807);
	CHECK_EQ(got.mask, ~(1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1)));
}

static void refused(void)
{
	struct kernel_action a = { 0 };

	CHECK_EQ(action(0, &a, NULL), -EINVAL);
	CHECK_EQ(action(65, NULL, &a), -EINVAL);
	CHECK_EQ(action(65, (void *)8, NULL), -EFAULT);
	CHECK_EQ(action(SIGKILL, &a, NULL), -EINVAL);
	CHECK_EQ(action(SIGKILL, (void *)8, NULL), -EFAULT);
	CHECK_EQ(action(SIGKILL, NULL, &a), 0);
	CHECK_EQ(raw4(SYS_rt_sigaction, SIGUSR1, 8, 0, 4), -EINVAL);
	CHECK_EQ(action(SIGUSR1, NULL, (void *)8), -EFAULT);
}

static void ignored(void)
{
	static const int signals[] = { SIGUSR1, SIGSEGV, SIGSYS, SIGBUS, SIGILL, 40 };
	sigset_t all, old, waits;

	sigfillset(&all);
	for (size_t i = 0; i < COUNT(signals); i++) {
		handled = 0;
		on_signal(signals[i], count, 0);
		sigprocmask(SIG_SETMASK, &all, &old);
		raise(signals[i]);
		sigpending(&waits);
		CHECK_EQ(sigismember(&waits, signals[i]), 1);
		on_signal(signals[i], SIG_IGN, 0);
		sigpending(&waits);
		CHECK_EQ(sigismember(&waits, signals[i]), 0);
		on_signal(signals[i], count, 0);
		sigprocmask(SIG_SETMASK, &old, NULL);
		CHECK_EQ(handled, 0);
	}
}

int main(void)
{
	within_once();
	again();
	CHECK_EQ(child_status(twice), SIGUSR1);
	flags();
	refused();
	ignored();
	return passed("resethand");
}
