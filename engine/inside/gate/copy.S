/*
 * long target_in(void *to, uint64_t from, size_t len), target_out(uint64_t to, const void *from,
 * size_t len): 0, or -EFAULT when either side is bad.
 * long target_swap(uint64_t at, int32_t was, int32_t now): the same; puts `now` where
 * `was` stands, and changes nothing else.
 * The fault handler knows the range of addresses and sends the thread to copy_failed
 * (caught.c).  No vector register, no flag beyond DF.
 */
	.text
	.globl target_in, target_out, copy_try, copy_try_end, copy_failed
	.type target_in, @function
	.type target_out, @function
target_in:
target_out:
copy_try:
	.cfi_startproc
	mov	%rdx, %rcx
	cmp	$2048, %rdx
	jae	long
	sub	$32, %rcx
	jb	2f
1:	mov	(%rsi), %rax
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
	jae	1b
2:	add	$32, %rcx		/* what is left */
	je	done
	cmp	$8, %rdx
	jb	short
	sub	$8, %rcx
	jbe	4f
3:	mov	(%rsi), %rax
	mov	%rax, (%rdi)
	add	$8, %rsi
	add	$8, %rdi
	sub	$8, %rcx
	ja	3b
	/* The last eight, of which some may have been copied: `rep movsb` begins slowly. */
4:	mov	(%rsi,%rcx), %rax
	mov	%rax, (%rdi,%rcx)
done:	xor	%eax, %eax
	ret
short:	cmp	$4, %ecx
	jb	5f
	mov	(%rsi), %eax
	mov	-4(%rsi,%rcx), %r8d
	mov	%eax, (%rdi)
	mov	%r8d, -4(%rdi,%rcx)
	jmp	done
5:	movzbl	(%rsi), %eax
	movzbl	-1(%rsi,%rcx), %r8d
	mov	%al, (%rdi)
	mov	%r8b, -1(%rdi,%rcx)
	cmp	$3, %ecx
	jne	done
	movzbl	1(%rsi), %eax
	mov	%al, 1(%rdi)
	jmp	done
long:	rep movsb
	jmp	done
	.cfi_endproc

	.globl target_swap
	.type target_swap, @function
target_swap:
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
