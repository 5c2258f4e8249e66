/*
 * Faults: the handler sees the true address, instruction, registers and
 * code, may change the context and go on; the vector registers that a
 * handler spoils, or changes in the frame, are the frame's afterwards.
 */
#include <sys/prctl.h>
#include <ucontext.h>
#include "check.h"

extern char fault_at[], after_fault[], illegal_at[], after_illegal[];
extern char trap_after[], divide_at[], after_divide[];

static volatile sig_atomic_t handled;
static volatile siginfo_t last;
static volatile greg_t last_rip;
static void *volatile resume;

static void go_on(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	last = *info;
	last_rip = uc->uc_mcontext.gregs[REG_RIP];
	if (resume)
		uc->uc_mcontext.gregs[REG_RIP] = (greg_t)resume;
	uc->uc_mcontext.gregs[REG_RAX] = 0x1122334455;
	CHECK_EQ(raw0(SYS_getpid), getpid());
	handled++;
}

static void check_fault(int sig, int code, void *addr, void *rip)
{
	CHECK_EQ(handled, 1);
	CHECK_EQ(last.si_signo, sig);
	CHECK_EQ(last.si_code, code);
	CHECK_EQ(last.si_addr, addr);
	CHECK_EQ(last_rip, rip);
	handled = 0;
}

static void segv(void *at, int code)
{
	long rax = 0;

	resume = after_fault;
	asm volatile(".globl fault_at, after_fault\n.hidden fault_at, after_fault\n"
		     "fault_at: movl $1, (%1)\nafter_fault:"
		     : "+a"(rax) : "r"(at) : "memory");
	CHECK_EQ(rax, 0x1122334455);
	check_fault(SIGSEGV, code, at, fault_at);
}

static void illegal(void)
{
	long rax = 0;

	resume = after_illegal;
	asm volatile(".globl illegal_at, after_illegal\n"
		     ".hidden illegal_at, after_illegal\n"
		     "illegal_at: ud2\nafter_illegal:" : "+a"(rax));
	CHECK_EQ(rax, 0x1122334455);
	check_fault(SIGILL, ILL_ILLOPN, illegal_at, illegal_at);
}

static void breakpoint(void)
{
	long rax = 0;

	resume = NULL;
	asm volatile(".globl trap_after\n.hidden trap_after\n"
		     "int3\ntrap_after:" : "+a"(rax));
	CHECK_EQ(rax, 0x1122334455);
	CHECK_EQ(handled, 1);
	CHECK_EQ(last.si_code, SI_KERNEL);
	CHECK_EQ(last_rip, trap_after);
	handled = 0;
}

static void divide(void)
{
	long rax = 1, rdx = 0;

	resume = after_divide;
	asm volatile(".globl divide_at, after_divide\n"
		     ".hidden divide_at, after_divide\n"
		     "divide_at: divq %2\nafter_divide:"
		     : "+a"(rax), "+d"(rdx) : "r"(0l));
	check_fault(SIGFPE, FPE_INTDIV, divide_at, divide_at);
}

static void bus(void)
{
	int fd = memfd_create("bus", 0);

	CHECK_EQ(ftruncate(fd, 4096), 0);
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	long rax = 0;
	resume = after_fault;
	asm volatile("lea after_bus(%%rip), %%rdx\nmov %%rdx, %0\n"
		     "movl $1, (%2)\nafter_bus:"
		     : "=m"(resume), "+a"(rax) : "r"(p + 4096 + 16)
		     : "memory", "rdx");
	CHECK_EQ(handled, 1);
	CHECK_EQ(last.si_signo, SIGBUS);
	CHECK_EQ(last.si_code, BUS_ADRERR);
	CHECK_EQ(last.si_addr, p + 4096 + 16);
	handled = 0;
	munmap(p, 8192);
	close(fd);
}

/* Single steps over a system call: each instruction traps once. */
static volatile int steps;
static void *step_rip[16];

static void step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	if (steps < 16)
		step_rip[steps] = (void *)uc->uc_mcontext.gregs[REG_RIP];
	steps++;
	if (steps > 1000)
		_exit(1);
}

static void spoil(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	asm volatile("pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm7, %%xmm7\n\t"
		     "pcmpeqd %%xmm15, %%xmm15\n\tfninit\n\tfldpi"
		     : : : "xmm0", "xmm7", "xmm15");
	if (sig == SIGUSR2)
		memset(&uc->uc_mcontext.fpregs->_xmm[7], 0x5a, 16);
}

static void vectors(void)
{
	uint64_t in[2] = { 0x123456789, 0x987654321 }, out0[2], out7[2], out15[2];
	long ret;

	for (int sig = SIGUSR1; sig <= SIGUSR2; sig += SIGUSR2 - SIGUSR1) {
		on_siginfo(sig, spoil, 0);
		asm volatile("movdqu %4, %%xmm0\n\tmovdqu %4, %%xmm7\n\t"
			     "movdqu %4, %%xmm15\n\tsyscall\n\t"
			     "movdqu %%xmm0, %1\n\tmovdqu %%xmm7, %2\n\t"
			     "movdqu %%xmm15, %3"
			     : "=a"(ret), "=m"(out0), "=m"(out7), "=m"(out15)
			     : "m"(in), "0"(SYS_tgkill), "D"(getpid()),
			       "S"(gettid()), "d"(sig)
			     : "rcx", "r11", "xmm0", "xmm7", "xmm15", "memory");
		CHECK_EQ(ret, 0);
		CHECK(!memcmp(in, out0, 16) && !memcmp(in, out15, 16));
		if (sig == SIGUSR1)
			CHECK(!memcmp(in, out7, 16));
		else
			CHECK_EQ(out7[0], 0x5a5a5a5a5a5a5a5a);
	}
}

/* A handler changes the result of the call that it interrupted. */
static void change_result(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	CHECK_EQ(uc->uc_mcontext.gregs[REG_RAX], 0);
	uc->uc_mcontext.gregs[REG_RAX] = 4711;
	uc->uc_mcontext.gregs[REG_R14] = 4712;
}

static void result(void)
{
	register long r14 asm("r14") = 1;
	long ret;

	on_siginfo(SIGUSR1, change_result, 0);
	asm volatile("syscall" : "=a"(ret), "+r"(r14)
		     : "0"(SYS_tgkill), "D"(getpid()), "S"(gettid()), "d"(SIGUSR1)
		     : "rcx", "r11", "memory");
	CHECK_EQ(ret, 4711);
	CHECK_EQ(r14, 4712);
}

static void own_trap(void)
{
	on_siginfo(SIGTRAP, step, 0);
	steps = 0;
	asm volatile("pushf\n\torl $0x100, (%%rsp)\n\tpopf\n\t"
		     "nop\n\tnop\n\tnop\n\t"
		     "pushf\n\tandl $~0x100, (%%rsp)\n\tpopf" : : : "memory", "cc");
	CHECK_EQ(steps, 6);
	for (int i = 1; i < 3; i++)
		CHECK_EQ(step_rip[i], step_rip[0] + i);
}

int main(void)
{
	void *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	static const int signals[] = { SIGSEGV, SIGILL, SIGTRAP, SIGFPE, SIGBUS };

	for (size_t i = 0; i < COUNT(signals); i++)
		on_siginfo(signals[i], go_on, 0);
	for (int i = 0; i < 200; i++) {
		segv((void *)16, SEGV_MAPERR);
		segv(none, SEGV_ACCERR);
		illegal();
		breakpoint();
		divide();
		bus();
		vectors();
		result();
	}
	own_trap();
	return passed("faults");
}
