/*
 * A small debugger: the program traces a child of its own, through fork and
 * exec, reads and changes its registers and memory, steps it, and sees its
 * system calls.
 */
#include <sys/ptrace.h>
#include <sys/user.h>
#include "check.h"

static volatile long secret = 1234;

static void traced(void)
{
	CHECK_EQ(ptrace(PTRACE_TRACEME, 0, 0, 0), 0);
	raise(SIGSTOP);
	_exit(secret == 4321 ? 11 : 12);
}

static void memory_and_registers(void)
{
	struct user_regs_struct regs;
	int status;
	pid_t pid = fork();

	if (!pid)
		traced();
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	errno = 0;
	CHECK_EQ(ptrace(PTRACE_PEEKDATA, pid, &secret, 0), 1234);
	CHECK_EQ(ptrace(PTRACE_POKEDATA, pid, &secret, 4321), 0);
	CHECK_EQ(ptrace(PTRACE_GETREGS, pid, 0, &regs), 0);
	CHECK(regs.rip && regs.rsp);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	}
	CHECK_EQ(ptrace(PTRACE_CONT, pid, 0, 0), 0);
	CHECK_EQ(status_of(pid), EXITED(11));
}

/* Other stops than the exec's and the exit are passed on. */
static void over_exec(void)
{
	int status, events = 0;
	pid_t pid = fork();

	if (!pid) {
		CHECK_EQ(ptrace(PTRACE_TRACEME, 0, 0, 0), 0);
		raise(SIGSTOP);
		execl(beside("die"), "die", "exit", "21", NULL);
		_exit(99);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXEC), 0);
	CHECK_EQ(ptrace(PTRACE_CONT, pid, 0, 0), 0);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int sig = WSTOPSIG(status);
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
			events++;
			sig = 0;
		}
		CHECK_EQ(ptrace(PTRACE_CONT, pid, 0, sig), 0);
	}
	CHECK_EQ(status, EXITED(21));
	CHECK_EQ(events, 1);
}

static void attach(void)
{
	struct user_regs_struct regs;
	int status;
	pid_t pid = fork();

	if (!pid)
		for (;;)
			raw0(SYS_getppid);
	sleep_ms(5);
	CHECK_EQ(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	CHECK_EQ(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	/* Under mve a call that is not patched yet shows as a signal first. */
	while (WIFSTOPPED(status) && status >> 16 != PTRACE_EVENT_STOP) {
		CHECK_EQ(ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status)), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
	}
	CHECK_EQ(status >> 16, PTRACE_EVENT_STOP);
	CHECK_EQ(ptrace(PTRACE_GETREGS, pid, 0, &regs), 0);
	CHECK_EQ(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	sleep_ms(5);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(status_of(pid), SIGKILL);
}

int main(void)
{
	for (int i = 0; i < 5; i++) {
		memory_and_registers();
		over_exec();
		attach();
	}
	return passed("debugger");
}
