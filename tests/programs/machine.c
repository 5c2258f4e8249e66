/*
 * Instructions that ask the machine: the time stamp counter goes on, random
 * numbers fill the register they should and no other, flags are as the manual
 * says.  What they gave is written to a pipe, so that twins are compared.
 */
#include <cpuid.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include "check.h"

static int pipe_fd[2];

static void tell(uint64_t value)
{
	uint64_t back;

	CHECK_EQ(write(pipe_fd[1], &value, sizeof(value)), sizeof(value));
	CHECK_EQ(read(pipe_fd[0], &back, sizeof(back)), sizeof(back));
	CHECK_EQ(back, value);
}

static void counters(void)
{
	uint64_t before = 0, kept = 0x1122334455667788;

	for (int i = 0; i < 1000; i++) {
		uint64_t now, low, high, cx = kept, r11 = 0;

		/* Neither flags nor registers but two change. */
		asm volatile("mov %4, %%r11\n\tstc\n\trdtsc\n\tjnc 1f\n\tmov %%r11, %2\n1:"
			     : "=a"(low), "=d"(high), "+m"(r11), "+c"(cx)
			     : "r"(kept) : "r11", "cc");
		CHECK_EQ(cx, kept);
		CHECK_EQ(r11, kept);
		now = high << 32 | low;
		CHECK(now > before && low >> 32 == 0 && high >> 32 == 0);
		before = now;
		if (i % 100 == 0)
			tell(now);
	}
	for (int i = 0; i < 10; i++) {
		unsigned aux;
		uint64_t now = __builtin_ia32_rdtscp(&aux);

		CHECK(now > before && aux < 1u << 24);
		before = now;
		tell(now);
	}
}

static void randoms(void)
{
	uint64_t ax = 0x1122334455667788, zero_extended = ax, rbx, r9;

	asm volatile("1: rdrand %%rbx\n\tjnc 1b\n\tmov %%rbx, %0" : "=r"(rbx) : : "rbx", "cc");
	tell(rbx);
	asm volatile("1: rdrand %%ax\n\tjnc 1b" : "+a"(ax) : : "cc");
	CHECK_EQ(ax >> 16, 0x112233445566);
	tell(ax);
	asm volatile("1: rdrand %%eax\n\tjnc 1b" : "+a"(zero_extended) : : "cc");
	CHECK_EQ(zero_extended >> 32, 0);
	tell(zero_extended);
	asm volatile("1: rdrand %%r9\n\tjnc 1b\n\tmov %%r9, %0" : "=r"(r9) : : "r9", "cc");
	tell(r9);
}

static void seeds(void)
{
	uint64_t seed;

	asm volatile("1: rdseed %0\n\tjnc 1b" : "=r"(seed) : : "cc");
	tell(seed);
}

static sigjmp_buf before_fault;

static void faulted(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK_EQ(sig, SIGSEGV);
	CHECK_EQ(info->si_code, SI_KERNEL);
	siglongjmp(before_fault, 1);
}

/* A program may have the counter fault. */
static void denied(void)
{
	struct sigaction act = { .sa_sigaction = faulted, .sa_flags = SA_SIGINFO };
	int status, how = 0;

	CHECK_EQ(prctl(PR_SET_TSC, PR_TSC_SIGSEGV), 0);
	CHECK_EQ(prctl(PR_GET_TSC, &how), 0);
	CHECK_EQ(how, PR_TSC_SIGSEGV);
	CHECK_EQ(sigaction(SIGSEGV, &act, NULL), 0);
	for (volatile int i = 0; i < 2; i++)
		if (!sigsetjmp(before_fault, 1))
			check_failed(__FILE__, (int)__builtin_ia32_rdtsc(), "no fault");
	if (!fork()) {
		signal(SIGSEGV, SIG_DFL);
		_exit((int)__builtin_ia32_rdtsc() & 1);
	}
	CHECK(wait(&status) > 0 && WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGSEGV);
	CHECK_EQ(prctl(PR_SET_TSC, PR_TSC_ENABLE), 0);
	tell(__builtin_ia32_rdtsc());
}

int main(void)
{
	unsigned a, b, c, d;

	CHECK_EQ(pipe(pipe_fd), 0);
	counters();
	if (__get_cpuid(1, &a, &b, &c, &d) && c & bit_RDRND)
		randoms();
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_RDSEED)
		seeds();
	denied();
	return passed("machine");
}
