/*
 * The vDSO that programs see.  Its functions go to the kernel's own, whose
 * addresses the monitor leaves in boot.vdso; in a session with followers they
 * go through the gate, and the clock is told like any other call.  getrandom is left out: its state is the kernel's affair, and
 * a libc that does not find it makes the call.
 */
#include "engine/abi/boot.h"
#include "engine/abi/thread.h"

	.hidden boot
.macro vdso_function name, index, nr
	.globl __vdso_\name
	.weak \name
	.type __vdso_\name, @function
	.type \name, @function
__vdso_\name:
\name:
	.cfi_startproc
	cmpq	$0, boot + BOOT_STREAMS(%rip)
	jne	1f
	mov	boot + BOOT_VDSO + 8 * \index(%rip), %rax
	test	%rax, %rax
	jz	1f
	jmp	*%rax
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
