/*
 * Jumps to where no code is, and signals where no frame can be: the program's handler sees
 * the jump as the kernel tells it; a signal whose frame does not fit is a SIGSEGV of the
 * program's, which its handler on another stack sees and without which it dies; a stack
 * that may grow grows.
 */
#include <setjmp.h>
#include <sys/resource.h>
#include <ucontext.h>
#include "check.h"

#define PAGE 4096

static sigjmp_buf back;
static volatile siginfo_t last;
static volatile greg_t last_rip, last_rsp;
static volatile sig_atomic_t handled;
static char other_stack[64 * 1024] __attribute__((aligned(16)));

static void note(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	last = *info;
	last_rip = uc->uc_mcontext.gregs[REG_RIP];
	last_rsp = uc->uc_mcontext.gregs[REG_RSP];
	handled++;
	siglongjmp(back, 1);
}

static void count(int sig)
{
	handled++;
}

static void jump(const void *to)
{
	asm volatile("jmp *%0" : : "r"(to));
	__builtin_unreachable();
}

static void jump_seen(const void *to, int sig, int code, const void *address)
{
	handled = 0;
	if (!sigsetjmp(back, 1))
		jump(to);
	CHECK_EQ(handled, 1);
	CHECK_EQ(last.si_signo, sig);
	CHECK_EQ(last.si_code, code);
	CHECK_EQ(last.si_addr, address);
	if (code != SI_KERNEL)
		CHECK_EQ(last_rip, to);
}

static char *pages(int n, int prot)
{
	char *at = mmap(NULL, (size_t)n * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

/* The last bytes of a page, behind which nothing is. */
static char *page_end(const char *bytes, int n)
{
	char *at = pages(2, PROT_READ | PROT_WRITE);

	munmap(at + PAGE, PAGE);
	memcpy(at + PAGE - n, bytes, (size_t)n);
	CHECK_EQ(mprotect(at, PAGE, PROT_READ | PROT_EXEC), 0);
	return at + PAGE - n;
}

static void jumps(void)
{
	static const int signals[] = { SIGSEGV, SIGILL, SIGBUS };
	char *none = pages(1, PROT_NONE), *data = pages(1, PROT_READ | PROT_WRITE);
	char *nops = page_end("\x90\x90", 2), *illegal = page_end("\x06", 1);
	char *prefixes = page_end("\x66\x0f\x0b", 3);

	for (size_t i = 0; i < COUNT(signals); i++)
		on_siginfo(signals[i], note, 0);
	for (int i = 0; i < 20; i++) {
		jump_seen(NULL, SIGSEGV, SEGV_MAPERR, NULL);
		jump_seen((void *)0x123456, SIGSEGV, SEGV_MAPERR, (void *)0x123456);
		jump_seen((void *)0x7ffffffff123, SIGSEGV, SEGV_MAPERR, (void *)0x7ffffffff123);
		jump_seen((void *)0x8000000000001234, SIGSEGV, SI_KERNEL, NULL);
		jump_seen(none + 5, SIGSEGV, SEGV_ACCERR, none + 5);
		jump_seen(data + 70, SIGSEGV, SEGV_ACCERR, data + 70);
		jump_seen(illegal, SIGILL, ILL_ILLOPN, illegal);
		jump_seen(prefixes, SIGILL, ILL_ILLOPN, prefixes);
		handled = 0;
		if (!sigsetjmp(back, 1))
			jump(nops);
		CHECK_EQ(handled, 1);
		CHECK_EQ(last_rip, nops + 2);
		CHECK_EQ(last.si_addr, nops + 2);
	}
}

static void jump_alone(void)
{
	jump((void *)0x123456);
}

/* A signal to oneself, with the stack pointer elsewhere meanwhile. */
static void signal_on(const void *stack, int sig)
{
	long ret;

	asm volatile("mov %%rsp, %%r12\n\tmov %1, %%rsp\n\tsyscall\n\tmov %%r12, %%rsp"
		     : "=a"(ret)
		     : "r"(stack), "0"(SYS_tgkill), "D"(getpid()), "S"(gettid()), "d"(sig)
		     : "rcx", "r11", "r12", "memory");
	CHECK_EQ(ret, 0);
}

static void other_stack_set(void *at, size_t len)
{
	stack_t other = { .ss_sp = at, .ss_size = len };

	CHECK_EQ(sigaltstack(&other, NULL), 0);
}

static void bad_stack_seen(void)
{
	char *none = pages(4, PROT_NONE), *read = pages(4, PROT_READ);
	const void *const bad[] = { (void *)0x2000, none + 2 * PAGE, read + 3 * PAGE,
				    (void *)0x9000000000000000, NULL };

	other_stack_set(other_stack, sizeof(other_stack));
	on_signal(SIGUSR1, count, 0);
	on_siginfo(SIGSEGV, note, SA_ONSTACK);
	for (size_t i = 0; i < COUNT(bad); i++) {
		handled = 0;
		if (!sigsetjmp(back, 1))
			signal_on(bad[i], SIGUSR1);
		CHECK_EQ(handled, 1);
		CHECK_EQ(last.si_signo, SIGSEGV);
		CHECK_EQ(last.si_code, SI_KERNEL);
		CHECK_EQ(last_rsp, bad[i]);
	}
}

static void bad_stack_alone(void)
{
	on_signal(SIGUSR1, count, 0);
	signal_on((void *)0x2000, SIGUSR1);
}

static void bad_stack_same(void)
{
	on_signal(SIGSEGV, count, 0);
	signal_on((void *)0x2000, SIGSEGV);
}

static void bad_stack_blocked(void)
{
	sigset_t set;

	other_stack_set(other_stack, sizeof(other_stack));
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, NULL);
	on_signal(SIGUSR1, count, 0);
	on_signal(SIGSEGV, count, SA_ONSTACK);
	signal_on((void *)0x2000, SIGUSR1);
}

static void bad_other_stack(void)
{
	other_stack_set(pages(4, PROT_NONE), 4 * PAGE);
	on_signal(SIGUSR1, count, SA_ONSTACK);
	raise(SIGUSR1);
}

/* Frames on frames, until the other stack is full. */
static void again(int sig)
{
	handled++;
	raise(sig);
}

static void full_other_stack(void)
{
	char *at = pages(16, PROT_READ | PROT_WRITE);

	other_stack_set(at + 8 * PAGE, 8 * PAGE);
	on_signal(SIGUSR1, again, SA_ONSTACK | SA_NODEFER);
	raise(SIGUSR1);
}

static void grow(void)
{
	char here;

	handled = 0;
	on_signal(SIGUSR1, count, 0);
	signal_on((char *)((uintptr_t)(&here - 700000) & ~15ul), SIGUSR1);
	CHECK_EQ(handled, 1);
}

static void dies(void (*how)(void), int sig)
{
	struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	CHECK_EQ(child_status(how), sig);
}

int main(void)
{
	IN_CHILD(jumps);
	dies(jump_alone, SIGSEGV);
	IN_CHILD(bad_stack_seen);
	dies(bad_stack_alone, SIGSEGV);
	dies(bad_stack_same, SIGSEGV);
	dies(bad_stack_blocked, SIGSEGV);
	dies(bad_other_stack, SIGSEGV);
	dies(full_other_stack, SIGSEGV);
	IN_CHILD(grow);
	return passed("wild");
}
