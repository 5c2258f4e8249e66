/*
 * The two ways to be in the middle of a function: a checkpoint is opened where the caller will
 * return to, and its restoring returns there once more.  Restoring overwrites the stack that
 * stood when it was opened, which may be the one that it runs on: it has one of its own.
 */
	.text

/* int mve_checkpoint_open(void): a struct jump on the stack, then checkpoint_open(it). */
	.globl	mve_checkpoint_open
	.type	mve_checkpoint_open, @function
mve_checkpoint_open:
	.cfi_startproc
	mov	(%rsp), %rax
	lea	8(%rsp), %rdx
	sub	$72, %rsp
	.cfi_adjust_cfa_offset 72
	mov	%rbx, (%rsp)
	mov	%rbp, 8(%rsp)
	mov	%r12, 16(%rsp)
	mov	%r13, 24(%rsp)
	mov	%r14, 32(%rsp)
	mov	%r15, 40(%rsp)
	mov	%rdx, 48(%rsp)
	mov	%rax, 56(%rsp)
	stmxcsr	64(%rsp)
	fnstcw	68(%rsp)
	mov	%rsp, %rdi
	call	checkpoint_open
	add	$72, %rsp
	.cfi_adjust_cfa_offset -72
	ret
	.cfi_endproc
	.size	mve_checkpoint_open, .-mve_checkpoint_open

/* int mve_checkpoint_restore(void): checkpoint_restore() on a stack of its own.  It returns
 * only where it has changed nothing. */
	.globl	mve_checkpoint_restore
	.type	mve_checkpoint_restore, @function
mve_checkpoint_restore:
	.cfi_startproc
	push	%rbp
	.cfi_adjust_cfa_offset 8
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	lea	checkpoint_stack+65536(%rip), %rsp
	call	checkpoint_restore
	mov	%rbp, %rsp
	pop	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	mve_checkpoint_restore, .-mve_checkpoint_restore

/* void checkpoint_jump(const struct jump *, int value) */
	.globl	checkpoint_jump
	.hidden	checkpoint_jump
	.type	checkpoint_jump, @function
checkpoint_jump:
	mov	%esi, %eax
	mov	(%rdi), %rbx
	mov	8(%rdi), %rbp
	mov	16(%rdi), %r12
	mov	24(%rdi), %r13
	mov	32(%rdi), %r14
	mov	40(%rdi), %r15
	ldmxcsr	64(%rdi)
	fldcw	68(%rdi)
	mov	48(%rdi), %rsp
	jmp	*56(%rdi)
	.size	checkpoint_jump, .-checkpoint_jump

/* long mve_checkpoint_kernel(nr, six arguments): the result, or -errno.  In a held program calls
 * from here are the runtime's own affair (engine/abi/rollback.h). */
	.globl	mve_checkpoint_kernel
	.type	mve_checkpoint_kernel, @function
mve_checkpoint_kernel:
	.cfi_startproc
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	mov	8(%rsp), %r9
	syscall
	ret
	.cfi_endproc
	.size	mve_checkpoint_kernel, .-mve_checkpoint_kernel

	.hidden	checkpoint_open, checkpoint_restore
	.section .note.GNU-stack, "", @progbits
	.globl	checkpoint_stack
	.hidden	checkpoint_stack
	.comm	checkpoint_stack, 65536, 4096
