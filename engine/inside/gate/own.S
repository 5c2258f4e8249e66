/*
 * Calls that the inside makes itself.  They need nothing of the gate, and so what makes no
 * other call hangs on nothing of it either.
 */
	.text

/* C's arguments become the kernel's; where its `syscall` stands says whose call it is. */
.macro OWN_BODY
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
.endm

/* long own_call(nr, a, b, c, d, e, f): a call of the inside itself. */
	.globl own_call
	.type own_call, @function
own_call:
	OWN_BODY

/*
 * long request_sleep(nr, a, b, c, d, e, request): the same, of a thread that waits for
 * the monitor.  The monitor reads in /proc where the thread sleeps: what stands behind
 * this `syscall` stands nowhere else (REQUEST_SIGN), and so r9 is a request.
 */
	.globl request_sleep
	.type request_sleep, @function
request_sleep:
	OWN_BODY
	.ascii	"mve asks here\0\0"

/*
 * long own_aside(work, what): work(what) by a thread of its own, which has our memory, our stack
 * behind what stands there, and a table of descriptors of its own, with none.  We sleep until
 * it has ended; -errno: it was not made.
 */
#define NR_CLONE	56
#define NR_EXIT		60
#define NR_CLOSE_RANGE	436
#define ASIDE_FLAGS	0x14f00		/* VM, FS, FILES, SIGHAND, VFORK, THREAD */
#define UNSHARE		2
	.globl own_aside
	.type own_aside, @function
own_aside:
	.cfi_startproc
	push	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	push	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	mov	%rdi, %r12
	mov	%rsi, %r13
	mov	$NR_CLONE, %eax
	mov	$ASIDE_FLAGS, %edi
	xor	%esi, %esi
	xor	%edx, %edx
	xor	%r10d, %r10d
	xor	%r8d, %r8d
	syscall
	test	%rax, %rax
	jz	aside_child
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore r13
	pop	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	ret
	.cfi_endproc
aside_child:
	.cfi_startproc
	.cfi_undefined rip
	mov	$NR_CLOSE_RANGE, %eax
	xor	%edi, %edi
	mov	$-1, %esi
	mov	$UNSHARE, %edx
	syscall
	test	%rax, %rax
	jnz	aside_exit
	mov	%r13, %rdi
	call	*%r12
aside_exit:
	mov	$NR_EXIT, %eax
	xor	%edi, %edi
	syscall
	ud2
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
