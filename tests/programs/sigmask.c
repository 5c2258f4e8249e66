/*
 * The signal mask as the program sees it: what it sets it reads back, SIGSYS
 * included; handlers run with sa_mask; ppoll, pselect, epoll_pwait and
 * sigsuspend put theirs in place and take it away; sigaction reads back what
 * was set.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include "check.h"

static volatile uint64_t in_handler;
static volatile sig_atomic_t handled, depth, deepest;

static sigset_t set_of(int first, int second)
{
	sigset_t set;

	sigemptyset(&set);
	if (first)
		sigaddset(&set, first);
	if (second)
		sigaddset(&set, second);
	return set;
}

static uint64_t bits(const sigset_t *set)
{
	uint64_t value = 0;

	for (int sig = 1; sig <= 64; sig++)
		if (sigismember(set, sig) > 0)
			value |= 1ull << (sig - 1);
	return value;
}

static uint64_t current(void)
{
	uint64_t value = 0;

	CHECK_EQ(raw4(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &value, 8), 0);
	return value;
}

#define BIT(sig) (1ull << ((sig) - 1))

static void read_back(void)
{
	uint64_t all = ~0ull, old = 7, sys = BIT(SIGSYS);

	CHECK_EQ(raw4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8), 0);
	CHECK_EQ(old, 0);
	CHECK_EQ(current(), ~(BIT(SIGKILL) | BIT(SIGSTOP)));
	CHECK_EQ(raw4(SYS_rt_sigprocmask, SIG_UNBLOCK, &sys, &old, 8), 0);
	CHECK_EQ(old, ~(BIT(SIGKILL) | BIT(SIGSTOP)));
	CHECK_EQ(current(), ~(BIT(SIGKILL) | BIT(SIGSTOP) | sys));
	CHECK_EQ(raw4(SYS_rt_sigprocmask, SIG_SETMASK, &sys, NULL, 8), 0);
	CHECK_EQ(current(), sys);
	CHECK_EQ(raw0(SYS_getpid), getpid());
	all = 0;
	CHECK_EQ(raw4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8), 0);
	CHECK_EQ(old, sys);
	CHECK_EQ(current(), 0);
}

static void errors(void)
{
	uint64_t set = 0;

	CHECK_EQ(raw4(SYS_rt_sigprocmask, 9, &set, NULL, 8), -EINVAL);
	CHECK_EQ(raw4(SYS_rt_sigprocmask, 9, NULL, &set, 8), 0);
	CHECK_EQ(raw4(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, 16), -EINVAL);
	CHECK_EQ(raw4(SYS_rt_sigprocmask, SIG_SETMASK, 8, NULL, 8), -EFAULT);
	set = BIT(SIGUSR1);
	CHECK_EQ(raw4(SYS_rt_sigprocmask, SIG_SETMASK, &set, 8, 8), -EFAULT);
	CHECK_EQ(current(), BIT(SIGUSR1));
	set = 0;
	CHECK_EQ(raw4(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, 8), 0);
}

static void handler(int sig)
{
	in_handler = current();
	handled++;
}

static void mask_in_handler(int flags, sigset_t mask, uint64_t wanted)
{
	struct sigaction sa = { .sa_handler = handler, .sa_mask = mask,
				.sa_flags = flags }, back;

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &back), 0);
	CHECK(back.sa_handler == handler);
	CHECK_EQ(back.sa_flags & ~0x4000000, flags);
	CHECK_EQ(bits(&back.sa_mask), bits(&mask));
	handled = 0;
	raise(SIGUSR1);
	CHECK_EQ(handled, 1);
	CHECK_EQ(in_handler, wanted);
	CHECK_EQ(current(), 0);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &back), 0);
	CHECK_EQ(back.sa_handler == SIG_DFL, !!(flags & SA_RESETHAND));
}

static void handler_masks(void)
{
	sigset_t none = set_of(0, 0), some = set_of(SIGUSR2, SIGSYS);
	uint64_t own = BIT(SIGUSR1), more = bits(&some);

	mask_in_handler(0, none, own);
	mask_in_handler(0, some, own | more);
	mask_in_handler(SA_NODEFER, none, 0);
	mask_in_handler(SA_NODEFER, some, more);
	mask_in_handler(SA_RESETHAND, none, own);
	mask_in_handler(SA_RESETHAND | SA_NODEFER | SA_RESTART, some, more);
}

/* Each handler raises the next signal: they nest unless masked. */
static void nesting(int sig)
{
	if (++depth > deepest)
		deepest = depth;
	if (sig < SIGRTMIN + 10)
		raise(sig + 1);
	depth--;
}

static void nested(void)
{
	for (int sig = SIGRTMIN; sig <= SIGRTMIN + 10; sig++)
		on_signal(sig, nesting, 0);
	raise(SIGRTMIN);
	CHECK_EQ(deepest, 11);
	CHECK_EQ(depth, 0);
	on_signal(SIGUSR1, handler, 0);
}

static void pending_one(void)
{
	sigset_t block = set_of(SIGUSR1, SIGSYS), pending;

	sigprocmask(SIG_SETMASK, &block, NULL);
	handled = 0;
	raise(SIGUSR1);
	CHECK_EQ(handled, 0);
	CHECK_EQ(sigpending(&pending), 0);
	CHECK_EQ(bits(&pending), BIT(SIGUSR1));
}

static void temporary(void)
{
	sigset_t none = set_of(0, 0), sys = set_of(SIGSYS, 0);
	struct timespec t = { 5, 0 };
	struct epoll_event e;
	int epoll = epoll_create1(0);
	uint64_t kept = BIT(SIGUSR1) | BIT(SIGSYS);

	for (int i = 0; i < 20; i++) {
		sigset_t *set = i & 1 ? &none : &sys;
		pending_one();
		CHECK_FAILS(ppoll(NULL, 0, &t, set), EINTR);
		CHECK(handled == 1 && current() == kept);
		CHECK_EQ(in_handler, BIT(SIGUSR1) | bits(set));
		pending_one();
		CHECK_FAILS(pselect(0, NULL, NULL, NULL, &t, set), EINTR);
		CHECK(handled == 1 && current() == kept);
		CHECK_EQ(in_handler, BIT(SIGUSR1) | bits(set));
		pending_one();
		CHECK_FAILS(epoll_pwait(epoll, &e, 1, 5000, set), EINTR);
		CHECK(handled == 1 && current() == kept);
		CHECK_EQ(in_handler, BIT(SIGUSR1) | bits(set));
		pending_one();
		CHECK_FAILS(sigsuspend(set), EINTR);
		CHECK(handled == 1 && current() == kept);
		CHECK_EQ(in_handler, BIT(SIGUSR1) | bits(set));
	}
	t.tv_sec = 0;
	CHECK_EQ(ppoll(NULL, 0, &t, &none), 0);
	CHECK_EQ(current(), kept);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close(epoll);
}

/* A handler may change what is blocked after it. */
static void edit_context(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	CHECK_EQ(bits(&uc->uc_sigmask) & ~BIT(SIGUSR2), BIT(SIGSYS));
	sigaddset(&uc->uc_sigmask, SIGUSR2);
}

static void edited_by_handler(void)
{
	sigset_t sys = set_of(SIGSYS, 0), none = set_of(0, 0);

	sigprocmask(SIG_SETMASK, &sys, NULL);
	on_siginfo(SIGUSR1, edit_context, 0);
	raise(SIGUSR1);
	CHECK_EQ(current(), BIT(SIGSYS) | BIT(SIGUSR2));
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void *inherits(void *arg)
{
	CHECK_EQ(current(), BIT(SIGSYS) | BIT(SIGHUP));
	return NULL;
}

static void child_inherits(void)
{
	inherits(NULL);
}

static void inherited(void)
{
	sigset_t set = set_of(SIGSYS, SIGHUP), none = set_of(0, 0);
	pthread_t thread;

	sigprocmask(SIG_SETMASK, &set, NULL);
	CHECK_EQ(pthread_create(&thread, NULL, inherits, NULL), 0);
	pthread_join(thread, NULL);
	IN_CHILD(child_inherits);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int main(void)
{
	read_back();
	errors();
	handler_masks();
	nested();
	temporary();
	edited_by_handler();
	inherited();
	return passed("sigmask");
}
