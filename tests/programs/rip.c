/*
 * Where a signal finds the program: a handler sees an instruction and a
 * stack of the program's own, never of somebody who stands between it and
 * the kernel, whatever it was doing, a system call included.  Profilers, Go's
 * preemption, garbage collectors and musl's cancellation count on it.
 */
#include <sys/time.h>
#include <ucontext.h>
#include "check.h"

extern char loop_begin[], loop_end[];
long loop(long rounds);

asm(".text\n.globl loop, loop_begin, loop_end\n"
    ".hidden loop, loop_begin, loop_end\n"
    "loop:\n"
    "	push %rbx\n	push %rbp\n"
    "	mov %rdi, %rbx\n"
    "	mov %rsp, %rbp\n"
    "loop_begin:\n"
    "1:	mov $110, %eax\n"
    "	syscall\n"
    "	mov $39, %eax\n"
    "	syscall\n"
    "	mov $-1, %edi\n"
    "	mov $3, %eax\n"
    "	syscall\n"
    "	dec %rbx\n"
    "	jnz 1b\n"
    "loop_end:\n"
    "	pop %rbp\n	pop %rbx\n"
    "	ret\n");

static volatile sig_atomic_t inside, outside, in_loop;
static volatile uintptr_t stack_low, stack_high, wrong_rip;

static void tick(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uintptr_t rip = uc->uc_mcontext.gregs[REG_RIP];
	uintptr_t rsp = uc->uc_mcontext.gregs[REG_RSP];

	if (!in_loop)
		return;
	/* loop's own few instructions around are fine too */
	bool good = rip >= (uintptr_t)loop_begin - 16 &&
		    rip <= (uintptr_t)loop_end + 16 &&
		    rsp >= stack_low && rsp <= stack_high;
	if (good)
		inside++;
	else {
		outside++;
		wrong_rip = rip;
	}
}

static void measure(void)
{
	struct itimerval every = { { 0, 100 }, { 0, 100 } }, off = { 0 };
	char here;

	stack_high = (uintptr_t)&here + 4096;
	stack_low = (uintptr_t)&here - 4096;
	setitimer(ITIMER_REAL, &every, NULL);
	while (inside + outside < 3000) {
		in_loop = 1;
		asm volatile("" : : : "memory");
		loop(2000);
		in_loop = 0;
	}
	setitimer(ITIMER_REAL, &off, NULL);
}

/* main's few instructions about the loop are hit now and then: under 2 % */
int main(void)
{
	on_siginfo(SIGALRM, tick, SA_RESTART);
	measure();
	if (outside > (inside + outside) / 50) {
		dprintf(2, "%d of %d signals elsewhere, e.g. at %#lx\n", outside,
			inside + outside, wrong_rip);
		return 1;
	}
	return passed("rip");
}
