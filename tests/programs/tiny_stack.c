/*
 * A system call needs no stack of the program's: it works with the stack
 * pointer at the very end of a mapping, and, with the argument "none", where
 * there is no memory at all.
 */
#include "check.h"

long call_on(void *stack, long nr, long a);

asm(".text\n.globl call_on\n.hidden call_on\n"
    "call_on:\n"
    "	push %rbx\n"
    "	mov %rsp, %rbx\n"
    "	mov %rsi, %rax\n"
    "	mov %rdi, %rsp\n"
    "	mov %rdx, %rdi\n"
    "	syscall\n"
    "	cmp %rsp, %rsp\n"
    "	mov %rbx, %rsp\n"
    "	pop %rbx\n"
    "	ret\n"
    ".globl getpid_on\n.hidden getpid_on\n"
    "getpid_on:\n"
    "	push %rbx\n"
    "	mov %rsp, %rbx\n"
    "	mov %rdi, %rsp\n"
    "	mov $39, %eax\n"
    "	syscall\n"
    "	mov %rbx, %rsp\n"
    "	pop %rbx\n"
    "	ret\n");

long getpid_on(void *stack);

static void on(char *stack)
{
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(call_on(stack, SYS_getppid, 0), getppid());
		CHECK_EQ(call_on(stack, SYS_close, -1), -EBADF);
		CHECK_EQ(call_on(stack, 9999, 0), -ENOSYS);
		CHECK_EQ(getpid_on(stack), getpid());
	}
}

int main(int argc, char **argv)
{
	char *p = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_EQ(mprotect(p + 4096, 4096, PROT_READ | PROT_WRITE), 0);
	if (argc > 1) {
		on(p + 64);
		on((char *)0x40);
		on((char *)-8);
	} else {
		for (int left = 0; left <= 512; left += 8)
			on(p + 4096 + left);
		for (int i = 512; i < 4096; i++)
			CHECK_EQ(p[4096 + i], 0);
	}
	return passed("tiny_stack");
}
