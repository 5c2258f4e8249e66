/*
 * long rules_try(long (*call)(void *), void *arg, uint64_t *back, uint64_t stack):
 * what call says, or -EFAULT.  It runs on a stack of its own, that ends at `stack`:
 * C in rules may need more than we have, and must not find ours.  Meanwhile *back is
 * where the thread's stack goes when the signal handler sends it to rules_left_here: a
 * rule has faulted, or its time is over (follow_rules.c).  The registers that calls keep
 * lie on the stack there.
 */
	.text
	.globl rules_try, rules_left_here
	.type rules_try, @function
rules_try:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	push	%rbp
	.cfi_adjust_cfa_offset 8
	push	%r12
	.cfi_adjust_cfa_offset 8
	push	%r13
	.cfi_adjust_cfa_offset 8
	push	%r14
	.cfi_adjust_cfa_offset 8
	push	%r15
	.cfi_adjust_cfa_offset 8
	mov	%rsp, (%rdx)
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rcx, %rsp
	call	*%rax
	mov	%rbp, %rsp
	.cfi_def_cfa_register %rsp
1:	pop	%r15
	.cfi_adjust_cfa_offset -8
	pop	%r14
	.cfi_adjust_cfa_offset -8
	pop	%r13
	.cfi_adjust_cfa_offset -8
	pop	%r12
	.cfi_adjust_cfa_offset -8
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
rules_left_here:
	mov	$-14, %rax
	cld
	jmp	1b
	.section .note.GNU-stack, "", @progbits
