/*
 * long target_in(void *to, uint64_t from, size_t len), target_out(uint64_t to, const void *from,
 * size_t len): 0, or -EFAULT when either side is bad.
 * long target_text(void *to, uint64_t from, size_t room): the bytes before a zero; how many, or
 * -EFAULT, or -E2BIG if they and eight more have no room.
 * long target_swap(uint64_t at, int32_t was, int32_t now): the same; puts `now` where
 * `was` stands, and changes nothing else.
 * The fault handler knows the range of addresses and sends the thread to copy_failed
 * (caught.c).  No vector register, no flag beyond DF.
 *
 * target_bytes is target_in for who tells the compiler which registers change (target_copy): rdi
 * is where the copy ends, and CF is set when a side was bad.  It is given the length in rcx, and
 * changes rax, rcx, rdx, rsi and r9.  target_16 is the same for sixteen bytes, as a time has,
 * and changes rax and rdx.
 */
/* From here on `rep movsb`, which begins slowly, is the quicker one (Zen 4). */
	.set	REP_FROM, 384

	.text
	.globl target_in, target_out, target_bytes, target_16, copy_try, copy_try_end, copy_failed
	.type target_in, @function
	.type target_out, @function
	.type target_bytes, @function
target_in:
target_out:
copy_try:
	.cfi_startproc
	mov	%rdx, %rcx
	xor	%eax, %eax
target_bytes:
	cmp	$REP_FROM, %rcx
	jb	short			/* else CF is not set, as by xor */
	rep movsb
	ret
short:	lea	(%rdi,%rcx), %r9
	mov	%rcx, %rdx
	cmp	$16, %rdx
	jb	under16
	sub	$32, %rdx		/* what is before the last 32 */
	jbe	2f
1:	mov	(%rsi), %rax
	mov	8(%rsi), %rcx
	mov	%rax, (%rdi)
	mov	%rcx, 8(%rdi)
	mov	16(%rsi), %rax
	mov	24(%rsi), %rcx
	mov	%rax, 16(%rdi)
	mov	%rcx, 24(%rdi)
	add	$32, %rsi
	add	$32, %rdi
	sub	$32, %rdx
	ja	1b
	/* The last ones, of which some may have been copied. */
	mov	(%rsi,%rdx), %rax
	mov	8(%rsi,%rdx), %rcx
	mov	%rax, (%rdi,%rdx)
	mov	%rcx, 8(%rdi,%rdx)
	jmp	3f
2:	mov	(%rsi), %rax
	mov	8(%rsi), %rcx
	mov	%rax, (%rdi)
	mov	%rcx, 8(%rdi)
3:	mov	16(%rsi,%rdx), %rax
	mov	24(%rsi,%rdx), %rcx
	mov	%rax, 16(%rdi,%rdx)
	mov	%rcx, 24(%rdi,%rdx)
done:	mov	%r9, %rdi
	xor	%eax, %eax
	ret
under16:
	cmp	$8, %edx
	jb	under8
	mov	(%rsi), %rax
	mov	-8(%rsi,%rdx), %rcx
	mov	%rax, (%rdi)
	mov	%rcx, -8(%rdi,%rdx)
	jmp	done
under8:	cmp	$4, %edx
	jb	under4
	mov	(%rsi), %eax
	mov	-4(%rsi,%rdx), %ecx
	mov	%eax, (%rdi)
	mov	%ecx, -4(%rdi,%rdx)
	jmp	done
under4:	test	%edx, %edx
	jz	done
	movzbl	(%rsi), %eax
	movzbl	-1(%rsi,%rdx), %ecx
	mov	%al, (%rdi)
	mov	%cl, -1(%rdi,%rdx)
	cmp	$3, %edx
	jne	done
	movzbl	1(%rsi), %eax
	mov	%al, 1(%rdi)
	jmp	done
	.cfi_endproc

	.type target_16, @function
target_16:
	.cfi_startproc
	mov	(%rsi), %rax
	mov	8(%rsi), %rdx
	mov	%rax, (%rdi)
	mov	%rdx, 8(%rdi)
	add	$16, %rdi		/* CF is not set */
	ret
	.cfi_endproc

	.globl target_text
	.type target_text, @function
target_text:
	.cfi_startproc
	lea	-8(%rdi,%rdx), %rdx	/* the last place for eight bytes */
	mov	%rdi, %r8
	movabs	$0x0101010101010101, %r9
	movabs	$0x8080808080808080, %r10
4:	cmp	%rdx, %rdi
	ja	7f
	mov	%esi, %eax
	and	$4095, %eax
	cmp	$4088, %eax		/* the next page may not be there */
	ja	6f
	mov	(%rsi), %rax
	mov	%rax, (%rdi)
	mov	%rax, %rcx
	sub	%r9, %rcx
	not	%rax
	and	%rax, %rcx
	and	%r10, %rcx
	jnz	5f			/* its lowest bit is the first zero's */
	add	$8, %rsi
	add	$8, %rdi
	jmp	4b
5:	bsf	%rcx, %rcx
	and	$0x38, %ecx
	mov	$-1, %rax
	shl	%cl, %rax
	not	%rax
	and	%rax, (%rdi)		/* nothing of what stands behind */
	shr	$3, %ecx
	lea	(%rdi,%rcx), %rax
	sub	%r8, %rax
	ret
6:	movzbl	(%rsi), %eax
	mov	%al, (%rdi)
	test	%eax, %eax
	jz	8f
	add	$1, %rsi
	add	$1, %rdi
	jmp	4b
7:	mov	$-7, %rax
	ret
8:	mov	%rdi, %rax
	sub	%r8, %rax
	ret
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
	stc
	ret
	.cfi_endproc
	.section .note.GNU-stack, "", @progbits
