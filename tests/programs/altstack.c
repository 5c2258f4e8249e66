/*
 * Alternate signal stacks: the handler is really on it, SS_ONSTACK is told,
 * sigaltstack returns what was set before, SS_AUTODISARM, each thread has its
 * own, fork keeps it, a stack overflow is survived on it.
 */
#include <pthread.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <ucontext.h>
#include "check.h"

#define SIZE (64 * 1024)
#define AUTODISARM (1U << 31)

static char alternate[SIZE] __attribute__((aligned(16)));
static volatile sig_atomic_t handled;
static char *volatile base = alternate;
static volatile int flags_seen;
static sigjmp_buf back;

static bool within(const void *p)
{
	return (char *)p >= base && (char *)p < base + SIZE;
}

static void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	stack_t now, other = { .ss_sp = base, .ss_size = SIZE };
	int local;

	CHECK(within(&local) && within(uc) && within(info));
	CHECK(!within((void *)uc->uc_mcontext.gregs[REG_RSP]));
	CHECK(uc->uc_stack.ss_sp == base && uc->uc_stack.ss_size == SIZE);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	flags_seen = now.ss_flags;
	if (now.ss_flags & SS_ONSTACK) {
		CHECK(now.ss_sp == base && now.ss_size == SIZE);
		CHECK_FAILS(sigaltstack(&other, NULL), EPERM);
	}
	if (sig == SIGUSR2)
		raise(SIGUSR1);
	handled++;
}

static void off_stack(int sig)
{
	int local;

	CHECK(!within(&local));
	handled++;
}

static void set_stack(char *at, int flags)
{
	stack_t new = { .ss_sp = at, .ss_size = SIZE, .ss_flags = flags };

	base = at;
	CHECK_EQ(sigaltstack(&new, NULL), 0);
}

static void plain(void)
{
	stack_t old;

	CHECK_EQ(sigaltstack(NULL, &old), 0);
	CHECK_EQ(old.ss_flags, SS_DISABLE);
	set_stack(alternate, 0);
	CHECK_EQ(sigaltstack(NULL, &old), 0);
	CHECK(old.ss_sp == alternate && old.ss_size == SIZE && !old.ss_flags);
	on_siginfo(SIGUSR1, handler, SA_ONSTACK);
	on_siginfo(SIGUSR2, handler, SA_ONSTACK);
	handled = 0;
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 2);
	CHECK_EQ(flags_seen, SS_ONSTACK);
	on_signal(SIGUSR1, off_stack, 0);
	raise(SIGUSR1);
	CHECK_EQ(handled, 3);
}

/* Inside a nested handler the interrupted stack is the alternate one. */
static void inner(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	int local;

	CHECK(within(&local));
	CHECK(within((void *)uc->uc_mcontext.gregs[REG_RSP]));
	CHECK((char *)&local < (char *)uc->uc_mcontext.gregs[REG_RSP]);
	handled++;
}

static void nested(void)
{
	handled = 0;
	on_siginfo(SIGUSR1, inner, SA_ONSTACK);
	raise(SIGUSR2);
	CHECK_EQ(handled, 2);
}

static void disarmed(int sig, siginfo_t *info, void *context)
{
	stack_t now;
	int local;

	CHECK(within(&local));
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK_EQ(now.ss_flags, SS_DISABLE);
	handled++;
}

static void autodisarm(void)
{
	stack_t now;

	set_stack(alternate, AUTODISARM);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK_EQ(now.ss_flags, (int)AUTODISARM);
	on_siginfo(SIGUSR1, disarmed, SA_ONSTACK);
	handled = 0;
	raise(SIGUSR1);
	CHECK_EQ(handled, 1);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK(now.ss_flags == (int)AUTODISARM && now.ss_sp == alternate);
}

static void errors(void)
{
	stack_t bad = { .ss_sp = alternate, .ss_size = 100 };

	CHECK_FAILS(sigaltstack(&bad, NULL), ENOMEM);
	bad.ss_size = SIZE;
	bad.ss_flags = 0x40;
	CHECK_FAILS(sigaltstack(&bad, NULL), EINVAL);
	CHECK_EQ(raw3(SYS_sigaltstack, 8, 0, 0), -EFAULT);
	CHECK_EQ(raw3(SYS_sigaltstack, 0, 8, 0), -EFAULT);
	bad.ss_flags = SS_DISABLE;
	CHECK_EQ(sigaltstack(&bad, NULL), 0);
	on_signal(SIGUSR1, off_stack, SA_ONSTACK);
	handled = 0;
	raise(SIGUSR1);
	CHECK_EQ(handled, 1);
}

static void on_overflow(int sig, siginfo_t *info, void *context)
{
	int local;

	CHECK(within(&local));
	CHECK_EQ(raw0(SYS_getpid), getpid());
	siglongjmp(back, 1);
}

__attribute__((noinline)) static int recurse(volatile char *above)
{
	volatile char page[2048];

	page[0] = above[0];
	return above[0] ? 0 : recurse(page) + page[0];
}

static void overflow(void)
{
	struct rlimit small = { 1 << 20, RLIM_INFINITY };
	volatile char start = 0;

	setrlimit(RLIMIT_STACK, &small);
	set_stack(alternate, 0);
	on_siginfo(SIGSEGV, on_overflow, SA_ONSTACK);
	for (volatile int i = 0; i < 10; i++)
		if (!sigsetjmp(back, 1))
			recurse(&start);
	on_signal(SIGSEGV, SIG_DFL, 0);
}

static void *in_thread(void *arg)
{
	stack_t now, mine = { .ss_sp = malloc(SIZE), .ss_size = SIZE };

	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK_EQ(now.ss_flags, SS_DISABLE);
	CHECK_EQ(sigaltstack(&mine, NULL), 0);
	base = mine.ss_sp;
	handled = 0;
	pthread_kill(pthread_self(), SIGUSR2);
	CHECK_EQ(handled, 1);
	return NULL;
}

static void in_child(void)
{
	stack_t now;

	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK(now.ss_sp == alternate && !now.ss_flags);
	handled = 0;
	raise(SIGUSR2);
	CHECK_EQ(handled, 1);
}

static void others(void)
{
	pthread_t thread;

	on_siginfo(SIGUSR2, handler, SA_ONSTACK);
	on_signal(SIGUSR1, SIG_IGN, 0);
	IN_CHILD(in_child);
	handled = 0;
	CHECK_EQ(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
}

int main(void)
{
	plain();
	nested();
	autodisarm();
	errors();
	overflow();
	others();
	return passed("altstack");
}
