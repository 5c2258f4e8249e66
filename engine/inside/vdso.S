/*
 * The vDSO that programs see.  Its functions go to the kernel's own, whose
 * addresses the monitor leaves in boot.vdso (a follower's will read the
 * stream instead).  getrandom is left out: its state is the kernel's affair, and
 * a libc that does not find it makes the call.
 */
#include "engine/abi/boot.h"

	.hidden boot
	.hidden gate_net
.macro vdso_function name, index, nr
	.globl __vdso_\name
	.weak \name
	.type __vdso_\name, @function
	.type \name, @function
__vdso_\name:
\name:
	.cfi_startproc
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

/* Never taken with a kernel that has a vDSO; counted as a trapped call. */
vdso_call:
	.cfi_startproc
	mov	%rcx, %r10
	lea	1f(%rip), %rcx
	jmp	gate_net
1:	ret
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
