/*
 * Control arrives at a `syscall` instruction from elsewhere: by an indirect
 * jump onto the instruction itself, past the mov that stands before it, and
 * by a longjmp-like return to it.  A patched mov must leave it usable.
 */
#include "check.h"

asm(".text\n"
    ".globl whole\n.hidden whole\n"
    ".globl inner\n.hidden inner\n"
    "whole:\n"
    "	mov $39, %eax\n"
    "inner:\n"
    "	syscall\n"
    "	ret\n"
    ".globl jump_to\n.hidden jump_to\n"
    "jump_to:\n"		/* (target, nr) */
    "	mov %rsi, %rax\n"
    "	jmp *%rdi\n"
    ".globl return_to\n.hidden return_to\n"
    "return_to:\n"
    "	mov %rsi, %rax\n"
    "	push %rdi\n"
    "	ret\n"
    ".globl own_number\n.hidden own_number\n"
    "own_number:\n"		/* an instruction whose tail is a syscall */
    "	.byte 0xb8\n"
    "hidden_call:\n"
    "	.byte 0x0f, 0x05, 0xc3, 0x00\n"
    "	ret\n"
    ".globl hidden_call\n.hidden hidden_call\n");

long whole(void);
extern char inner[], hidden_call[];
long jump_to(void *target, long nr);
long return_to(void *target, long nr);
long own_number(void);

int main(void)
{
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(whole(), getpid());
		CHECK_EQ(jump_to(inner, SYS_getppid), getppid());
		CHECK_EQ(jump_to(inner, SYS_gettid), gettid());
		CHECK_EQ(return_to(inner, SYS_getpid), getpid());
		CHECK_EQ(jump_to(inner, 9999), -ENOSYS);
	}
	CHECK_EQ(own_number(), 0x00c3050f);
	CHECK_EQ(jump_to(hidden_call, SYS_getppid), getppid());
	CHECK_EQ(jump_to(hidden_call, SYS_getpid), getpid());
	CHECK_EQ(own_number(), 0x00c3050f);
	return passed("inner_jump");
}
