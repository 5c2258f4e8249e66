/*
 * A thread's place in C code, kept, and a new thread that goes on there.  It is on the
 * signal stack of its block: what the program had in registers is in the signal's frame,
 * and comes back with its end.
 */
#include "engine/abi/thread.h"

#define C_RIP	0
#define C_RSP	8
#define C_RBX	16
#define C_RBP	24
#define C_R12	32
#define C_R13	40
#define C_R14	48
#define C_R15	56
#define NR_CLONE 56
#define NR_EXIT	60
#define VFORK_FILES 0x4500	/* CLONE_VM | CLONE_VFORK | CLONE_FILES */

	.text
	.globl context_save
	.type context_save, @function
context_save:
	.cfi_startproc
	mov	(%rsp), %rax
	mov	%rax, C_RIP(%rdi)
	lea	8(%rsp), %rax
	mov	%rax, C_RSP(%rdi)
	mov	%rbx, C_RBX(%rdi)
	mov	%rbp, C_RBP(%rdi)
	mov	%r12, C_R12(%rdi)
	mov	%r13, C_R13(%rdi)
	mov	%r14, C_R14(%rdi)
	mov	%r15, C_R15(%rdi)
	xor	%eax, %eax
	ret
	.cfi_endproc

/* context_clone(context, flags, fs, block): flags say that fs is the thread's (SETTLS). */
	.globl context_clone
	.type context_clone, @function
context_clone:
	.cfi_startproc
	push	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	push	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	mov	%rdi, %r12
	mov	%rcx, %r13
	mov	%rdx, %r8
	mov	%rsi, %rdi
	mov	C_RSP(%r12), %rsi
	xor	%edx, %edx
	xor	%r10d, %r10d
	mov	$NR_CLONE, %eax
	syscall
	test	%rax, %rax
	jz	1f
	pop	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore r13
	pop	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	ret
	.cfi_endproc
1:	.cfi_startproc
	.cfi_undefined rip
	wrgsbase %r13
	mov	%r12, %rcx
	mov	C_RBX(%rcx), %rbx
	mov	C_RBP(%rcx), %rbp
	mov	C_R12(%rcx), %r12
	mov	C_R13(%rcx), %r13
	mov	C_R14(%rcx), %r14
	mov	C_R15(%rcx), %r15
	mov	$1, %eax
	jmp	*C_RIP(%rcx)
	.cfi_endproc

/*
 * copy_away(flags, made): the child between shares our stack, and leaves it as it is.
 */
	.globl copy_away
	.type copy_away, @function
copy_away:
	.cfi_startproc
	mov	%rdi, %r8
	mov	%rsi, %r9
	mov	$VFORK_FILES, %edi
	xor	%esi, %esi
	xor	%edx, %edx
	xor	%r10d, %r10d
	mov	$NR_CLONE, %eax
	syscall
	test	%rax, %rax
	jnz	1f
	mov	%r8, %rdi
	xor	%esi, %esi
	xor	%edx, %edx
	xor	%r8d, %r8d
	mov	$NR_CLONE, %eax
	syscall
	test	%rax, %rax
	jz	1f
	mov	%eax, (%r9)
	xor	%edi, %edi
	mov	$NR_EXIT, %eax
	syscall
	ud2
1:	ret
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
