/* The first instructions of the inside in a program. */
#include "engine/abi/attach.h"

	.text
	.hidden inside_begin, return_to_program, attach_serve

/* The monitor starts a fresh image here: rdi and rsp are the first block's. */
	.globl inside_start
inside_start:
	.cfi_startproc
	.cfi_undefined rip
	wrgsbase %rdi
	call	inside_begin
	jmp	return_to_program
	.cfi_endproc

/*
 * A thread of a program that runs already, which the monitor holds: rdi its block, rsi what it
 * is told (struct attach), edx which step.  The monitor takes it over at attach_done, and
 * gives it the program's registers.  If the monitor is no more the thread takes them itself:
 * no more of it runs on our stack, and a signal may come at any instruction.
 */
	.globl attach_run, attach_done
attach_run:
	.cfi_startproc
	.cfi_undefined rip
	mov	%rdi, %rbx
	call	attach_serve
	mov	$39, %eax		/* getpid: the monitor sees it */
	syscall
attach_done:
	mov	$14, %eax		/* rt_sigprocmask */
	mov	$2, %edi
	lea	BACK_MASK(%rbx), %rsi
	mov	$0, %edx
	mov	$8, %r10d
	syscall
	mov	%gs:BACK_RBX, %rbx
	mov	%gs:BACK_RBP, %rbp
	mov	%gs:BACK_R12, %r12
	mov	%gs:BACK_R13, %r13
	mov	%gs:BACK_R14, %r14
	mov	%gs:BACK_R15, %r15
	pushq	%gs:BACK_FLAGS
	popfq
	mov	%gs:BACK_RAX, %rax
	mov	%gs:BACK_RCX, %rcx
	mov	%gs:BACK_RDX, %rdx
	mov	%gs:BACK_RSI, %rsi
	mov	%gs:BACK_RDI, %rdi
	mov	%gs:BACK_R8, %r8
	mov	%gs:BACK_R9, %r9
	mov	%gs:BACK_R10, %r10
	mov	%gs:BACK_R11, %r11
	mov	%gs:BACK_RSP, %rsp
	jmp	*%gs:BACK_RIP
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
