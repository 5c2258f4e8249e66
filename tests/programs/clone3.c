/*
 * clone3: as fork, with a stack, as a thread, with a pidfd, with a chosen
 * pid, with signal handlers cleared, as vfork; and its errors.
 */
#include <linux/sched.h>
#include <sched.h>
#include <poll.h>
#include "check.h"

#define STACK (64 * 1024)

static long clone3(struct clone_args *args)
{
	return raw3(SYS_clone3, args, sizeof(*args), 0);
}

static void as_fork(void)
{
	for (int i = 0; i < 200; i++) {
		struct clone_args args = { .exit_signal = SIGCHLD };
		int value = 1;
		pid_t pid = clone3(&args);
		CHECK(pid >= 0);
		if (!pid) {
			value = 2;
			_exit(getpid() == raw0(SYS_gettid) ? value : 1);
		}
		CHECK_EQ(status_of(pid), EXITED(2));
		CHECK_EQ(value, 1);
	}
}

static volatile long shared;

/* fn(arg) on the new stack, when there is one; then exit with its result */
__attribute__((noinline))
static long start(struct clone_args *args, long (*fn)(long), long arg)
{
	long ret;

	asm volatile("mov %2, %%r12\n\tmov %3, %%r13\n\t"
		     "mov $435, %%eax\n\tsyscall\n\t"
		     "test %%rax, %%rax\n\tjne 1f\n\t"
		     "xor %%ebp, %%ebp\n\tand $-16, %%rsp\n\t"
		     "mov %%r13, %%rdi\n\tcall *%%r12\n\t"
		     "mov %%rax, %%rdi\n\tmov $60, %%eax\n\tsyscall\n1:"
		     : "=a"(ret)
		     : "D"(args), "r"(fn), "r"(arg), "S"(sizeof(*args))
		     : "rcx", "r11", "r12", "r13", "memory", "cc");
	return ret;
}

static long add(long arg)
{
	shared += arg;
	return raw0(SYS_gettid) == raw0(SYS_getpid);
}

static uint64_t new_stack(void)
{
	void *p = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return (uintptr_t)p;
}

static void with_stack(uint64_t stack, uint64_t flags, long wanted)
{
	struct clone_args args = {
		.flags = flags, .exit_signal = SIGCHLD,
		.stack = stack, .stack_size = STACK,
	};

	shared = 0;
	pid_t pid = start(&args, add, 5);
	CHECK(pid > 0);
	CHECK_EQ(status_of(pid), EXITED(1));
	CHECK_EQ(shared, wanted);
}

static void as_thread(uint64_t stack)
{
	volatile int tid = -1;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			 CLONE_THREAD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		.child_tid = (uintptr_t)&tid,
		.stack = stack, .stack_size = STACK,
	};

	shared = 0;
	CHECK(start(&args, add, 7) > 0);
	while (tid)
		sched_yield();
	CHECK_EQ(shared, 7);
}

static void with_pidfd(void)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	siginfo_t info;

	pid_t pid = clone3(&args);
	if (!pid)
		_exit(6);
	CHECK(pidfd >= 0);
	struct pollfd poll_fd = { pidfd, POLLIN };
	CHECK_EQ(poll(&poll_fd, 1, 5000), 1);
	CHECK_EQ(waitid(P_PIDFD, pidfd, &info, WEXITED), 0);
	CHECK_EQ(info.si_pid, pid);
	CHECK_EQ(info.si_status, 6);
	CHECK_EQ(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
	close(pidfd);
}

static void with_chosen_pid(void)
{
	pid_t wanted = 31234;
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&wanted,
		.set_tid_size = 1,
	};

	long pid = clone3(&args);
	if (!pid)
		_exit(getpid() == wanted ? 4 : 1);
	if (pid == -EPERM || pid == -EEXIST)
		return;
	CHECK_EQ(pid, wanted);
	CHECK_EQ(status_of(pid), EXITED(4));
}

static void with_handlers_cleared(void)
{
	struct clone_args args = {
		.flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD,
	};
	struct sigaction sa;

	on_signal(SIGUSR1, (void (*)(int))add, 0);
	on_signal(SIGUSR2, SIG_IGN, 0);
	pid_t pid = clone3(&args);
	if (!pid) {
		CHECK_EQ(sigaction(SIGUSR1, NULL, &sa), 0);
		CHECK(sa.sa_handler == SIG_DFL);
		CHECK_EQ(sigaction(SIGUSR2, NULL, &sa), 0);
		CHECK(sa.sa_handler == SIG_IGN);
		CHECK_EQ(raw0(SYS_getppid), getppid());
		raise(SIGUSR1);
		_exit(1);
	}
	CHECK_EQ(status_of(pid), SIGUSR1);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &sa), 0);
	CHECK(sa.sa_handler == (void (*)(int))add);
}

static void errors(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	struct { struct clone_args args; uint64_t more; } big = { args, 1 };

	CHECK_EQ(raw3(SYS_clone3, 8, sizeof(args), 0), -EFAULT);
	CHECK_EQ(raw3(SYS_clone3, 0, sizeof(args), 0), -EFAULT);
	CHECK_EQ(raw3(SYS_clone3, &args, 8, 0), -EINVAL);
	CHECK_EQ(raw3(SYS_clone3, &args, 8192, 0), -E2BIG);
	CHECK_EQ(raw3(SYS_clone3, &big, sizeof(big), 0), -E2BIG);
	args.stack = 4096;
	CHECK_EQ(clone3(&args), -EINVAL);
	args.stack = 0;
	args.exit_signal = 100;
	CHECK_EQ(clone3(&args), -EINVAL);
	args.exit_signal = SIGCHLD;
	args.flags = CLONE_THREAD;
	CHECK_EQ(clone3(&args), -EINVAL);
	args.flags = CLONE_CLEAR_SIGHAND | CLONE_SIGHAND | CLONE_VM;
	CHECK_EQ(clone3(&args), -EINVAL);
}

int main(void)
{
	uint64_t stack = new_stack();

	as_fork();
	for (int i = 0; i < 50; i++) {
		with_stack(stack, 0, 0);
		with_stack(stack, CLONE_VM, 5);
		with_stack(stack, CLONE_VM | CLONE_VFORK, 5);
		as_thread(stack);
	}
	with_pidfd();
	with_chosen_pid();
	with_handlers_cleared();
	errors();
	return passed("clone3");
}
