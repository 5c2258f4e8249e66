/*
 * The vDSO that programs see.  Its functions go to the kernel's own, whose
 * addresses the monitor leaves in boot.vdso; in a session that is followed they
 * go through the gate, and are told like any other call; what a leader's clock says mostly on
 * a shorter way (clock_gettime_led).  getrandom has a state that is
 * the kernel's affair: there it says that it can keep none, and a libc makes the call.
 */
#include <asm-generic/errno.h>

#include "engine/abi/boot.h"
#include "engine/abi/thread.h"
#include "engine/inside/gate/above.h"
#include "engine/inside/locks/lock_gate.h"

	.hidden boot, quiet_on, told_clocks
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
vdso_function clock_gettime, 0, 228, clock_gettime_led
vdso_function gettimeofday, 1, 96, gettimeofday_led
vdso_function time, 2, 201, time_led
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

/*
 * A leader's clock: the kernel's function reads it into a place on the program's stack, from there
 * the program is given it, and C that needs no stack tells it.  That is one event, mostly: where
 * there is more to be said, or the program gave no good place, the clock is read again through
 * the gate.  A signal that comes meanwhile is held, as on the long way.
 */
.macro clock_go index, nr
	cmpq	$LANE_TELLS, %gs:T_TELLS
	jne	3f
	cmpq	$0, boot + BOOT_VDSO + 8 * \index(%rip)
	je	3f			/* the kernel has none, or it leads here (vdso_lead) */
	mov	%gs:T_HANDLERS, %rcx
	lea	ask_patch(%rip), %rax
	cmp	%rax, 8 * (\nr + 1)(%rcx)
	jne	3f
	sub	$CLOCK_SIZE, %rsp
	.cfi_adjust_cfa_offset CLOCK_SIZE
	movb	$1, %gs:T_BUSY
	mov	%rdi, CLOCK_ARG(%rsp)
	mov	%rsi, (CLOCK_ARG + 8)(%rsp)
.endm

/* What has been read is the program's, at `to`; a fault there leads to NAME_failed. */
.macro clock_give name, index, to
	test	%eax, %eax
	jne	2f
	mov	CLOCK_VALUE(%rsp), %rax
	mov	(CLOCK_VALUE + 8)(%rsp), %rcx
	mov	CLOCK_ARG + \to(%rsp), %rdx
	.globl \name\()_try, \name\()_try_end, \name\()_failed
\name\()_try:
	mov	%rax, (%rdx)
	mov	%rcx, 8(%rdx)
\name\()_try_end:
	mov	%rsp, %rdi
	call	*told_clocks + 8 * \index(%rip)
	test	%rax, %rax
	jne	1f
.endm

.macro clock_back name, nr
	.globl \name\()_window, \name\()_window_end, \name\()_held
\name\()_window:
	cmpb	$0, %gs:T_PENDING
	jne	\name\()_held
	movb	$0, %gs:T_BUSY
\name\()_window_end:
9:	xor	%eax, %eax
	.ifc	\name, time
	mov	CLOCK_VALUE(%rsp), %rax
	.endif
	add	$CLOCK_SIZE, %rsp
	.cfi_remember_state
	.cfi_adjust_cfa_offset -CLOCK_SIZE
	ret

	.cfi_restore_state
\name\()_held:
	call	stack_window
	jmp	9b

	/* It is told, and there is something left, that needs a stack of ours. */
1:	cmp	$CLOCK_LONG, %rax
	je	2f
	call	stack_quick
	jmp	9b

\name\()_failed:
2:	call	stack_window
	mov	CLOCK_ARG(%rsp), %rdi
	mov	(CLOCK_ARG + 8)(%rsp), %rsi
	add	$CLOCK_SIZE, %rsp
	.cfi_adjust_cfa_offset -CLOCK_SIZE
3:	mov	$\nr, %eax
	jmp	vdso_call
.endm

	.section .gate.stack, "ax"
clock_gettime_led:
	.cfi_startproc
	cmp	$31, %edi
	ja	3f
	mov	$VDSO_CLOCKS, %eax
	bt	%edi, %eax
	jnc	3f
	clock_go 0, 228
	lea	CLOCK_VALUE(%rsp), %rsi
	call	*boot + BOOT_VDSO(%rip)
	clock_give clock_gettime, 0, 8
	clock_back clock_gettime, 228
	.cfi_endproc

gettimeofday_led:
	.cfi_startproc
	test	%rsi, %rsi
	jne	3f
	clock_go 1, 96
	lea	CLOCK_VALUE(%rsp), %rdi
	call	*boot + BOOT_VDSO + 8(%rip)
	clock_give gettimeofday, 1, 0
	clock_back gettimeofday, 96
	.cfi_endproc

/* Nothing is written: who asks for that is seen to by the gate. */
time_led:
	.cfi_startproc
	test	%rdi, %rdi
	jne	3f
	clock_go 2, 201
	call	*boot + BOOT_VDSO + 16(%rip)
	mov	%rax, CLOCK_VALUE(%rsp)
	mov	%rsp, %rdi
	call	*told_clocks + 16(%rip)
	test	%rax, %rax
	jne	1f
	clock_back time, 201
	.cfi_endproc

/*
 * The short way to C: rax is the function, the call stands above our return
 * address.  A signal that comes meanwhile is held, as on the long way; then the
 * thread makes a call of the gate, and it comes there.
 */
	.globl stack_quick, stack_window, stack_window_end, stack_held
	.balign 16
stack_quick:
	.cfi_startproc
	movb	$1, %gs:T_BUSY
	mov	%gs:T_SELF, %rdi
	lea	8(%rsp), %rsi
	mov	%rsp, %rcx
	mov	%gs:T_STACK_TOP, %rsp
	push	%rcx
	push	%rcx
	.cfi_remember_state
	.cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 8	/* the CFA: 8 behind (%rsp) */
	call	*%rax
	pop	%rsp
	.cfi_restore_state
stack_window:
	cmpb	$0, %gs:T_PENDING
	jne	stack_held
	movb	$0, %gs:T_BUSY
stack_window_end:
	ret
stack_held:
	push	%rax
	.cfi_adjust_cfa_offset 8
	movb	$0, %gs:T_PENDING
	movb	$1, %gs:T_DEFERRED
	movb	$0, %gs:T_BUSY
	mov	$LOCK_BOUNDARY, %eax
	cmpb	$0, %gs:(T_FRAME + F_ANNOUNCED)
	jne	8f
	mov	$LOCK_LATER, %eax
8:	lea	9f(%rip), %rcx
	jmp	*%gs:T_GATE
	.quad	0
9:
	pop	%rax
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
