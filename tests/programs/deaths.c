/*
 * Every signal whose default is death kills with that very status, sent or
 * raised or by a fault, to one thread or to the process, blocked SIGSYS and
 * ignored SIGSEGV included; those whose default is to be ignored do not.
 */
#include <pthread.h>
#include <sys/resource.h>
#include "check.h"

static int number;

static void raise_it(void)
{
	raise(number);
	raw3(SYS_exit_group, 0, 0, 0);
}

static void kill_it(void)
{
	kill(getpid(), number);
}

static void *kill_from(void *arg)
{
	raise(number);
	return NULL;
}

static void in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, kill_from, NULL);
	pthread_join(thread, NULL);
}

static void reset_and_raise(int sig)
{
	signal(sig, SIG_DFL);
	raise(sig);
}

static void from_handler(void)
{
	on_signal(number, reset_and_raise, SA_NODEFER);
	raise(number);
}

static bool harmless(int sig)
{
	return sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH;
}

static bool unusable(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN ||
	       sig == SIGTTOU || sig == 32 || sig == 33;
}

static void each_signal(void)
{
	for (number = 1; number <= 64; number++) {
		int wanted = harmless(number) ? 0 : number;
		if (unusable(number))
			continue;
		CHECK_EQ(child_status(raise_it), wanted);
		CHECK_EQ(child_status(kill_it), wanted);
		CHECK_EQ(child_status(in_thread), wanted);
		if (number != SIGKILL)
			CHECK_EQ(child_status(from_handler), wanted);
	}
}

/* A fault cannot be blocked or ignored. */
static void blocked_fault(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	*(volatile int *)8 = 1;
}

static void ignored_fault(void)
{
	signal(SIGSEGV, SIG_IGN);
	*(volatile int *)8 = 1;
}

static void faulting_handler(int sig)
{
	*(volatile int *)8 = 1;
}

static void fault_in_handler(void)
{
	on_signal(SIGSEGV, faulting_handler, 0);
	*(volatile int *)8 = 1;
}

static void jump_nowhere(void)
{
	((void (*volatile)(void))0x10)();
}

static void bad_stack(void)
{
	on_signal(SIGUSR1, faulting_handler, 0);
	asm volatile("mov $8, %%rsp\n\tmov $39, %%eax\n\tsyscall\n\t"
		     "mov %%eax, %%edi\n\tmov $10, %%esi\n\tmov $62, %%eax\n\t"
		     "syscall\n\tud2" : : : "memory", "rax", "rcx", "rdi", "rsi");
}

static void call_abort(void)
{
	abort();
}

static void abort_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGABRT, SIG_IGN);
	abort();
}

static void killed_by_parent(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			raw0(SYS_getppid);
	sleep_ms(5);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(status_of(pid), SIGKILL);
}

int main(void)
{
	struct rlimit no_core = { 0, 0 };

	CHECK_EQ(setrlimit(RLIMIT_CORE, &no_core), 0);
	each_signal();
	CHECK_EQ(child_status(blocked_fault), SIGSEGV);
	CHECK_EQ(child_status(ignored_fault), SIGSEGV);
	CHECK_EQ(child_status(fault_in_handler), SIGSEGV);
	CHECK_EQ(child_status(jump_nowhere), SIGSEGV);
	CHECK_EQ(child_status(bad_stack), SIGSEGV);
	CHECK_EQ(child_status(call_abort), SIGABRT);
	CHECK_EQ(child_status(abort_blocked), SIGABRT);
	for (int i = 0; i < 20; i++)
		killed_by_parent();
	return passed("deaths");
}
