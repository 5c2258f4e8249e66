/*
 * The vDSO that programs see.  Its functions go to the kernel's own, whose
 * addresses the monitor leaves in boot.vdso; in a session that is followed they
 * go through the gate, and are told like any other call.  getrandom has a state that is
 * the kernel's affair: there it says that it can keep none, and a libc makes the call.
 */
#include <asm-generic/errno.h>

#include "engine/abi/boot.h"
#include "engine/abi/thread.h"

	.hidden boot, quiet_on
.macro vdso_function name, index, nr, in_company=1f
	.globl __vdso_\name
	.weak \name
	.type __vdso_\name, @function
	.type \name, @function
__vdso_\name:
\name:
	.cfi_startproc
	cmpq	$0, boot + BOOT_STREAMS(%rip)
	jne	3f
2:	mov	boot + BOOT_VDSO + 8 * \index(%rip), %rax
	test	%rax, %rax
	jz	\in_company
	jmp	*%rax
3:	cmpb	$0, quiet_on(%rip)
	jne	2b
	jmp	\in_company
1:	mov	$\nr, %eax
	jmp	vdso_call
	.cfi_endproc
	.size __vdso_\name, . - __vdso_\name
	.size \name, . - \name
.endm

	.text
vdso_function clock_gettime, 0, 228
vdso_function gettimeofday, 1, 96
vdso_function time, 2, 201
vdso_function clock_getres, 3, 229
vdso_function getcpu, 4, 309
vdso_function getrandom, 5, 318, random_call

/* Asked for its state (of length -1), or to take random bytes from one. */
random_call:
	.cfi_startproc
	cmp	$-1, %r8
	mov	$-ENOSYS, %rax
	je	1f
	mov	$318, %eax
	jmp	vdso_call
1:	ret
	.cfi_endproc

/*
 * In company, and with a kernel that has no vDSO: through the gate as from a
 * board, but with no site of the program's: that is how lead.c knows it.
 */
vdso_call:
	.cfi_startproc
	lea	1f(%rip), %rcx
	jmp	*%gs:T_GATE
	.quad	0
1:	ret
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
