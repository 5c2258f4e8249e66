/*
 * clone by hand, without libc: a thread on a stack of ours, its tid stored
 * and cleared, the futex wake at its end; CLONE_VM without CLONE_THREAD; a
 * new stack without CLONE_VM; set_tid_address.
 */
#include <linux/futex.h>
#include <sched.h>
#include "check.h"

#define STACK (64 * 1024)
#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | \
		      CLONE_THREAD | CLONE_SYSVSEM)

/*
 * Starts fn(arg) on the stack; fn ends by exit, with its own result.  Every
 * register but rax, rcx, r11 must be the same on both sides.
 */
long start(long flags, void *stack_top, int *parent_tid, int *child_tid,
	   long tls, long (*fn)(long), long arg);

asm(".text\n.globl start\n.hidden start\n"
    "start:\n"
    "	push %rbx\n	push %r12\n	push %r13\n"
    "	mov %rcx, %r10\n"	/* child_tid */
    "	mov %r9, %r12\n"	/* fn */
    "	mov 32(%rsp), %r13\n"	/* arg */
    "	mov $0x1234567, %ebx\n"
    "	mov $0x7654321, %r9d\n"
    "	std\n"
    "	mov $56, %eax\n"
    "	syscall\n"
    "	pushf\n"
    "	cld\n"
    "	cmp $0x1234567, %ebx\n	jne 2f\n"
    "	cmp $0x7654321, %r9d\n	jne 2f\n"
    "	testl $0x400, (%rsp)\n	je 2f\n"
    "	lea 8(%rsp), %rsp\n"
    "	test %rax, %rax\n"
    "	je 1f\n"
    "	pop %r13\n	pop %r12\n	pop %rbx\n"
    "	ret\n"
    "1:	xor %ebp, %ebp\n"
    "	and $-16, %rsp\n"
    "	mov %r13, %rdi\n"
    "	call *%r12\n"
    "	mov %rax, %rdi\n"
    "	mov $60, %eax\n"
    "	syscall\n"
    "2:	ud2\n");

static volatile int count;
static int parent_tid, child_tid;

static void *new_stack(void)
{
	void *p = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static long work(long arg)
{
	long pid = raw0(SYS_getpid), tid = raw0(SYS_gettid);

	__atomic_add_fetch(&count, arg, __ATOMIC_SEQ_CST);
	return arg == 1 ? pid == tid : pid != tid;
}

static void wait_cleared(int *tid)
{
	int seen;

	while ((seen = __atomic_load_n(tid, __ATOMIC_ACQUIRE)))
		raw6(SYS_futex, (long)tid, FUTEX_WAIT, seen, 0, 0, 0);
}

static void a_thread(void)
{
	char *stack = new_stack();

	for (int i = 0; i < 500; i++) {
		count = parent_tid = 0;
		child_tid = -1;
		long tid = start(THREAD_FLAGS | CLONE_PARENT_SETTID |
				 CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
				 stack + STACK, &parent_tid, &child_tid, 0,
				 work, 1);
		CHECK(tid > 0);
		CHECK_EQ(parent_tid, tid);
		wait_cleared(&child_tid);
		CHECK_EQ(count, 1);
	}
	munmap(stack, STACK);
}

static void shared_memory_process(void)
{
	char *stack = new_stack();

	for (int i = 0; i < 200; i++) {
		count = 0;
		pid_t pid = start(CLONE_VM | SIGCHLD, stack + STACK - 64, NULL,
				  NULL, 0, work, 2);
		CHECK(pid > 0);
		CHECK_EQ(status_of(pid), 0);
		CHECK_EQ(count, 2);
	}
	munmap(stack, STACK);
}

static void own_memory_new_stack(void)
{
	char *stack = new_stack();

	for (int i = 0; i < 100; i++) {
		count = 0;
		pid_t pid = start(SIGCHLD, stack + STACK, NULL, NULL, 0, work, 3);
		CHECK(pid > 0);
		CHECK_EQ(status_of(pid), 0);
		CHECK_EQ(count, 0);
	}
	munmap(stack, STACK);
}

/* A child that shares everything but is no thread, seen by waitid(__WALL). */
static void no_exit_signal(void)
{
	char *stack = new_stack();
	int status;

	count = 0;
	pid_t pid = start(CLONE_VM | CLONE_FILES | CLONE_FS, stack + STACK,
			  NULL, NULL, 0, work, 4);
	CHECK(pid > 0);
	CHECK_FAILS(waitpid(pid, &status, 0), ECHILD);
	CHECK_EQ(waitpid(pid, &status, __WALL), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(count, 4);
	munmap(stack, STACK);
}

static int through_libc(void *arg)
{
	*(volatile int *)arg = getpid();
	return 9;
}

static void libc_clone(void)
{
	char *stack = new_stack();
	volatile int seen = 0;

	pid_t pid = clone(through_libc, stack + STACK, CLONE_VM | SIGCHLD,
			  (void *)&seen);
	CHECK_EQ(status_of(pid), EXITED(9));
	CHECK_EQ(seen, pid);
	pid = clone(through_libc, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD,
		    (void *)&seen);
	CHECK_EQ(seen, pid);
	CHECK_EQ(status_of(pid), EXITED(9));
	munmap(stack, STACK);
}

static void bad_flags(void)
{
	CHECK_EQ(raw6(SYS_clone, CLONE_THREAD, 0, 0, 0, 0, 0), -EINVAL);
	CHECK_EQ(raw6(SYS_clone, CLONE_SIGHAND, 0, 0, 0, 0, 0), -EINVAL);
	CHECK_EQ(raw6(SYS_clone, CLONE_FS | CLONE_NEWNS, 0, 0, 0, 0, 0), -EINVAL);
	int *bad = (int *)8;
	pid_t pid = raw6(SYS_clone, CLONE_CHILD_SETTID | SIGCHLD, 0, 0, (long)bad,
			 0, 0);
	if (!pid)
		raw3(SYS_exit, 3, 0, 0);
	CHECK_EQ(status_of(pid), EXITED(3));
}

static void tid_address(void)
{
	int tid;

	CHECK_EQ(raw3(SYS_set_tid_address, &tid, 0, 0), gettid());
}

int main(void)
{
	a_thread();
	shared_memory_process();
	own_memory_new_stack();
	no_exit_signal();
	libc_clone();
	bad_flags();
	IN_CHILD(tid_address);
	return passed("clone_raw");
}
