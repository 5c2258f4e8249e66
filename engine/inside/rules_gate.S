/*
 * long rules_try(long (*call)(void *), void *arg, uint64_t *back): what call
 * says, or -EFAULT.  Meanwhile *back is where the thread's stack goes when the
 * signal handler sends it to rules_left_here: a rule has faulted, or its time is
 * over (follow_rules.c).  The registers that calls keep lie on the stack there.
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
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	mov	%rsp, (%rdx)
	mov	%rdi, %rax
	mov	%rsi, %rdi
	call	*%rax
1:	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%r15
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
