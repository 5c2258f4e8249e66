/*
 * long copy_try(void *to, const void *from, size_t len): 0, or -EFAULT when
 * either side is bad.
 * long swap_try(uint64_t at, int32_t was, int32_t now): the same; puts `now` where
 * `was` stands, and changes nothing else.
 * The fault handler knows the range of addresses and sends the thread to copy_failed
 * (caught.c).  No vector register, no flag beyond DF.
 */
	.text
	.globl copy_try, copy_try_end, copy_failed
	.type copy_try, @function
copy_try:
	.cfi_startproc
	mov	%rdx, %rcx
	cmp	$2048, %rdx
	jae	3f
	sub	$32, %rcx
	jb	5f
4:	mov	(%rsi), %rax
	mov	8(%rsi), %r8
	mov	16(%rsi), %r9
	mov	24(%rsi), %r10
	mov	%rax, (%rdi)
	mov	%r8, 8(%rdi)
	mov	%r9, 16(%rdi)
	mov	%r10, 24(%rdi)
	add	$32, %rsi
	add	$32, %rdi
	sub	$32, %rcx
	jae	4b
5:	add	$24, %rcx
	jl	2f
1:	mov	(%rsi), %rax
	mov	%rax, (%rdi)
	lea	8(%rsi), %rsi
	lea	8(%rdi), %rdi
	sub	$8, %rcx
	jae	1b
2:	add	$8, %rcx
3:	rep movsb
	xor	%eax, %eax
	ret
	.cfi_endproc

	.globl swap_try
	.type swap_try, @function
swap_try:
	.cfi_startproc
	mov	%esi, %eax
	lock cmpxchg %edx, (%rdi)
	xor	%eax, %eax
	ret
copy_try_end:
copy_failed:
	mov	$-14, %rax
	ret
	.cfi_endproc
	.section .note.GNU-stack, "", @progbits
