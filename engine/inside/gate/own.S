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

	.section .note.GNU-stack, "", @progbits
