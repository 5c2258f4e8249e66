/*
 * The gate: where every system call of a program passes.
 *
 * A patched site arrives at gate_patch through its board, an unpatched one at
 * gate_net, sent there by the SIGSYS handler; from then on the two are alike.
 * rcx holds the address to resume at; every other register but r11 is the
 * program's, and so are the flags and the 128 bytes below rsp.
 *
 * The short way (`pass`) makes the call in place and counts it.  The program's
 * stack is never touched: it may be a few bytes long, or gone.  What must be
 * kept is in the thread's block, and a signal that comes meanwhile first takes
 * the thread out of here, to before the call or behind it (gate_leave in
 * signal/leave.c knows the labels).  No instruction of it touches the flags.
 * While the call lasts r15 holds the program's return address for unwinders,
 * which cannot look behind GS.
 *
 * The long way (`slow`) saves the registers in the thread's block and runs C
 * on a stack of our own.  While T_BUSY is set, a signal is held to the end of
 * the call: signals.c notes it and the exit hands it over.
 *
 * The told way (`tell`) is a leader's: the call is made in place, with the program's
 * registers, and C only writes down what came of it.  Where there is more to do, for the
 * thread, or a signal has come (both by the word at T_TELLS), it turns into the long way.
 *
 * The asked way (`ask`) is the told way of calls that C looks at beforehand, too: of rows that
 * want it, if only where there are threads, and of all while tell_off says more than that.
 *
 * Calls that time ends pass `time` first, whichever way they take: it notes when they came.
 *
 * What the gate calls stands above it, and is known by address alone (above.h).
 *
 * Calls of a version leave from three places that the kernel's witness can
 * tell apart: .gate.patch, .gate.net and, for the inside's own calls, the rest.
 */
#include "engine/abi/thread.h"
#include "engine/inside/gate/above.h"

	.hidden slot_map, above, tell_off, row_calls, told_calls, way_handlers

#define FRAME(f)	%gs:(T_FRAME + f)
/* Between the top of our stack and the frame, for unwinders. */
#define BELOW_TOP(f)	(T_FRAME + f - T_STACK)

/* The registers of a call on its way into C code, but those that the gate has put there. */
.macro frame_save tier
	.if \tier
	movb	$\tier, FRAME(F_TIER)
	.endif
	mov	%rax, FRAME(F_RAX)
	mov	%rdi, FRAME(F_RDI)
	mov	%rsi, FRAME(F_RSI)
	mov	%rdx, FRAME(F_RDX)
	mov	%r10, FRAME(F_R10)
	mov	%r8, FRAME(F_R8)
	mov	%r9, FRAME(F_R9)
	mov	%rbx, FRAME(F_RBX)
	mov	%rbp, FRAME(F_RBP)
	mov	%r12, FRAME(F_R12)
	mov	%r13, FRAME(F_R13)
	mov	%r14, FRAME(F_R14)
	mov	%r15, FRAME(F_R15)
	mov	%rsp, FRAME(F_RSP)
	mov	FRAME(F_RESUME), %rcx
	.if \tier == 0
	mov	BOARD_SITE_END(%rcx), %rcx
	.endif
	mov	%rcx, FRAME(F_SITE_END)
.endm

/* What a call takes, and its number or result. */
.macro call_registers
	mov	FRAME(F_RAX), %rax
	mov	FRAME(F_RDI), %rdi
	mov	FRAME(F_RSI), %rsi
	mov	FRAME(F_RDX), %rdx
	mov	FRAME(F_R10), %r10
	mov	FRAME(F_R8), %r8
	mov	FRAME(F_R9), %r9
.endm

/* Goes on if a leader's call may be made in place; else the long way. */
.macro if_tells else
	mov	%gs:T_TELLS, %rcx
	lea	-LANE_TELLS(%rcx), %rcx
	jrcxz	1f
	jmp	\else
1:
.endm

/* A number in three bytes, as DWARF has them. */
#define SLEB0(n)	((n) & 0x7f | 0x80)
#define SLEB1(n)	((n) >> 7 & 0x7f | 0x80)
#define SLEB2(n)	((n) >> 14 & 0x7f)

/* A register, by its number in DWARF, stands there in the frame; rsp: see in_frame. */
.macro saved_in reg, at, pushed
	.cfi_escape 0x10, \reg, 4, 0x77, SLEB0(BELOW_TOP(\at) + \pushed), \
		SLEB1(BELOW_TOP(\at) + \pushed), SLEB2(BELOW_TOP(\at) + \pushed)
.endm

/*
 * rsp is `pushed` bytes below the top of our stack: the program's rsp and its return address;
 * and what it gave the call, which a debugger shows.
 */
.macro in_frame pushed=0
	.cfi_escape 0x0f, 5, 0x77, SLEB0(BELOW_TOP(F_RSP) + \pushed), \
		SLEB1(BELOW_TOP(F_RSP) + \pushed), SLEB2(BELOW_TOP(F_RSP) + \pushed), 0x06
	saved_in 16, F_SITE_END, \pushed
	saved_in 5, F_RDI, \pushed
	saved_in 4, F_RSI, \pushed
	saved_in 1, F_RDX, \pushed
	saved_in 10, F_R10, \pushed
	saved_in 8, F_R8, \pushed
	saved_in 9, F_R9, \pushed
.endm

/* The flags go into the frame; C may be called. */
.macro stack_begin
	mov	%gs:T_STACK_TOP, %rsp
	in_frame
	pushfq
	in_frame 8
	pop	%rcx
	in_frame
	mov	%rcx, FRAME(F_FLAGS)
	cld
	/* By the program's rsp tracee.c knows that the registers are in the frame. */
	pushq	FRAME(F_RSP)
	in_frame 8
	pushq	FRAME(F_SITE_END)
	in_frame 16
.endm

#define ROW_ASK		8192	/* in row_calls */

/* The slot is in rcx. */
.macro call_count offset
	mov	%gs:T_COUNTS, %rdx
	incq	\offset(%rdx,%rcx,8)
.endm

/*
 * The call of the frame, with the program's registers, and C that tells of it.  The flags
 * are in r11 behind it: nothing has touched them before.
 */
.macro call_in_place name, offset
	.globl \name\()_window, \name\()_window_end
	mov	%gs:T_STACK_TOP, %rsp
	in_frame
\name\()_window:
	if_tells slow_interrupted
	syscall
\name\()_window_end:
	mov	%r11, FRAME(F_FLAGS)
	mov	%rax, %gs:T_MADE
	cld
	movzwl	FRAME(F_SLOT), %ecx
	call_count \offset
	mov	told_calls(%rip), %rdx
	mov	%rax, %rdi
	call	*(%rdx,%rcx,8)
	jmp	dispatched
.endm

/* The same, where C has been asked; a signal that comes first is told as CALL_RESTART. */
.macro call_in_place_asked name, offset
	.globl \name\()_window, \name\()_window_end, \name\()_interrupted
	call_registers
\name\()_window:
	cmpb	$0, %gs:T_PENDING
	jne	\name\()_interrupted
	syscall
\name\()_window_end:
1:	mov	%rax, %gs:T_MADE
	movzwl	FRAME(F_SLOT), %ecx
	call_count \offset
	mov	%rax, %rdi
	mov	told_calls(%rip), %rdx
	call	*(%rdx,%rcx,8)
	jmp	dispatched
\name\()_interrupted:
	mov	$-512, %rax
	jmp	1b
.endm

#define NR_RT_SIGRETURN	15
#define NR_EXIT		60

/*
 * Those of struct gate_labels (signal/leave.c) stand in its order; the told and the asked way
 * are between.
 */
.macro gate name, pass_to, slow_name, tell_name, ask_name, time_name, offset, site_end
	.globl \name, \pass_to, \slow_name, \tell_name, \ask_name, \time_name
	.globl \name\()_counter, \name\()_counter_end
	.globl \name\()_busy, \name\()_saved, \name\()_call, \name\()_after
	.globl \name\()_restored, \name\()_counted, \name\()_end
	.balign 16
\name:
	.cfi_startproc
	.cfi_def_cfa rsp, 0
	\site_end
	mov	%rcx, FRAME(F_RESUME)
	movzwl	%ax, %r11d
	lea	slot_map(%rip), %rcx
	movzwl	(%rcx,%r11,2), %r11d
	mov	%r11, FRAME(F_SLOT)		/* and what else begins as 0 */
	mov	%gs:T_HANDLERS, %rcx
	jmp	*\offset(%rcx,%r11,8)
\slow_name:
	movb	$1, %gs:T_BUSY
\name\()_busy:
	frame_save \offset / 4096
	jmp	slow
	.balign 16
\time_name:
	mov	%rax, FRAME(F_RAX)
	mov	%rdx, FRAME(F_RDX)
\name\()_counter:
	rdtsc
	mov	%eax, %gs:T_BEGAN
	mov	%edx, %gs:(T_BEGAN + 4)
	mov	FRAME(F_RAX), %rax
	mov	FRAME(F_RDX), %rdx
\name\()_counter_end:
	lea	way_handlers(%rip), %rcx
	jmp	*\offset(%rcx,%r11,8)
	.balign 16
	.cfi_remember_state
\tell_name:
	movb	$1, %gs:T_BUSY
	mov	tell_off(%rip), %ecx
	jrcxz	2f
	lea	-TELLS_THREADS(%rcx), %rcx
	jrcxz	1f
	jmp	\ask_name
1:	movb	$1, %gs:T_AWAY		/* others may see to it that it shows a tick */
	movq	$0, %gs:T_ASKED_SEQ
2:	frame_save \offset / 4096
	call_in_place \tell_name, \offset
	.cfi_restore_state
	.balign 16
	.cfi_remember_state
\ask_name:
	movb	$1, %gs:T_BUSY
	if_tells \name\()_busy
	frame_save \offset / 4096
	stack_begin
	movq	$-512, %gs:T_MADE
	movzwl	FRAME(F_SLOT), %ecx
	lea	row_calls + ROW_ASK(%rip), %rdx
	mov	%gs:T_SELF, %rdi
	call	*(%rdx,%rcx,8)
	test	%eax, %eax
	js	slow_asked
	call_in_place_asked \ask_name, \offset
	.cfi_restore_state
	.balign 16
\pass_to:
	mov	%r15, %gs:T_R15
\name\()_saved:
	mov	FRAME(F_RESUME), %r15
	.if \offset == 0
	mov	BOARD_SITE_END(%r15), %r15
	.endif
	.cfi_register rip, r15
	.cfi_undefined r15
\name\()_call:
	syscall
\name\()_after:
	mov	%gs:T_R15, %r15
\name\()_restored:
	mov	%r11, %gs:T_FLAGS
	movzwl	FRAME(F_SLOT), %r11d
	mov	%gs:T_COUNTS, %rcx
	lea	\offset(%rcx,%r11,8), %rcx
	mov	(%rcx), %r11
	lea	1(%r11), %r11
	mov	%r11, (%rcx)
\name\()_counted:
	mov	%gs:T_FLAGS, %r11
	mov	FRAME(F_RESUME), %rcx
	jmp	*%rcx
\name\()_end:
	.cfi_endproc
.endm

.macro call_kernel name
	.globl \name
	.globl \name\()_window
	.globl \name\()_window_end
\name:
	.cfi_startproc
	mov	F_RAX(%rdi), %rax
	mov	F_RSI(%rdi), %rsi
	mov	F_RDX(%rdi), %rdx
	mov	F_R10(%rdi), %r10
	mov	F_R8(%rdi), %r8
	mov	F_R9(%rdi), %r9
	mov	F_RDI(%rdi), %rdi
\name\()_window:
	cmpb	$0, %gs:T_PENDING
	jne	call_interrupted
	syscall
\name\()_window_end:
	mov	%rax, %gs:T_MADE
	ret
	.cfi_endproc
.endm

	.section .gate.patch, "ax"
	/* Before the call: the return address is at BOARD_SITE_END(%rcx). */
	gate gate_patch, pass_patch, slow_patch, tell_patch, ask_patch, time_patch, 0, \
		".cfi_escape 0x10, 16, 2, 0x72, 0x78"
	call_kernel call_kernel_patch

	.section .gate.net, "ax"
	gate gate_net, pass_net, slow_net, tell_net, ask_net, time_net, 4096, \
		".cfi_register rip, rcx"
	call_kernel call_kernel_net

	.text
	.globl call_interrupted
call_interrupted:
	mov	$-512, %rax		/* -ERESTARTSYS: it has not begun */
	ret

/* The long way in: C on our own stack.  Its frame is what unwinders go by. */
	.globl slow_interrupted
slow:
	.cfi_startproc
	.cfi_undefined rip
slow_interrupted:
	movb	$0, %gs:T_AWAY
	stack_begin
slow_asked:
	mov	%gs:T_SELF, %rdi
	call	*above + ABOVE_CALL(%rip)
	jmp	dispatched
	.cfi_endproc

/*
 * The long way out, also a new thread's and a new program's way in.  C keeps rbx, rbp
 * and r12 to r15, so a call has them already.
 */
	.globl return_to_program
	.globl exit_window
	.globl exit_window_end
	.globl held_exit
return_to_program:
	.cfi_startproc
	.cfi_undefined rip
	mov	FRAME(F_RBX), %rbx
	mov	FRAME(F_RBP), %rbp
	mov	FRAME(F_R12), %r12
	mov	FRAME(F_R13), %r13
	mov	FRAME(F_R14), %r14
	mov	FRAME(F_R15), %r15
dispatched:
exit_window:	/* from the look on: a signal may come between it and the jump */
	cmpb	$0, %gs:T_PENDING
	jne	held_exit
	/* popfq is slow: only for what add and sahf cannot set (TF, DF, NT, AC, ID). */
	mov	FRAME(F_FLAGS), %rcx
	test	$0x244500, %ecx
	jnz	1f
	mov	%ecx, %eax
	shr	$11, %eax
	and	$1, %eax
	mov	%cl, %ah
	add	$0x7f, %al		/* OF, if the bit was set */
	sahf				/* the others */
2:	call_registers
	mov	FRAME(F_RSP), %rsp
	mov	FRAME(F_RESUME), %rcx
	mov	FRAME(F_FLAGS), %r11
	movb	$0, %gs:T_BUSY
exit_window_end:
	jmp	*%rcx
1:	push	%rcx
	popfq
	jmp	2b

/* A signal waits: above it is let in with the frame as its context. */
held_exit:
	cld
	mov	%gs:T_STACK_TOP, %rsp
	mov	%gs:T_SELF, %rdi
	call	*above + ABOVE_EXIT(%rip)
	jmp	return_to_program
	.cfi_endproc

/* What C code was at in a call has failed, and is left: see crash/failed.c. */
	.globl failed_leave
failed_leave:
	cld
	mov	%gs:T_STACK_TOP, %rsp
	mov	%gs:T_SELF, %rdi
	call	*above + ABOVE_FAILED(%rip)
	jmp	return_to_program

/* A fault by which the signal that waits comes now: see signal/signals.c. */
	.globl held_come_here
held_come_here:
	ud2

/* rt_sigreturn: the kernel takes the frame at the program's own rsp. */
	.globl sigreturn_exit
	.globl sigreturn_window
	.globl sigreturn_window_end
	.globl sigreturn_end, sigreturn_patch, sigreturn_patch_end, sigreturn_net, sigreturn_net_end
sigreturn_exit:
sigreturn_window:
	cmpb	$0, %gs:T_PENDING
	jne	held_exit
	mov	FRAME(F_RSP), %rsp
	mov	$NR_RT_SIGRETURN, %eax
	cmpb	$0, FRAME(F_TIER)
	movb	$0, %gs:T_BUSY
sigreturn_window_end:
	je	sigreturn_patch
	jmp	sigreturn_net
sigreturn_end:
	.section .gate.patch
sigreturn_patch:
	syscall
sigreturn_patch_end:
	hlt
	.section .gate.net
sigreturn_net:
	syscall
sigreturn_net_end:
	hlt
	.text

/*
 * long clone_kernel(struct frame *f, struct thread *child): the parent comes
 * back with the result; the child goes on above, on its own block.
 */
.macro clone_call name
\name:
	mov	F_RAX(%rdi), %rax
	mov	F_RDX(%rdi), %rdx
	mov	F_R10(%rdi), %r10
	mov	F_R8(%rdi), %r8
	mov	F_R9(%rdi), %r9
	mov	%rsi, %r12
	mov	F_RSI(%rdi), %rsi
	mov	F_RDI(%rdi), %rdi
	syscall
	jmp	clone_after
.endm
	.globl clone_kernel
clone_kernel:
	.cfi_startproc
	push	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	cmpb	$0, F_TIER(%rdi)
	jne	clone_net
	jmp	clone_patch
clone_after:
	test	%rax, %rax
	jz	clone_child
	mov	%rax, %gs:T_MADE
	pop	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	ret
	.cfi_endproc
clone_child:
	.cfi_startproc
	.cfi_undefined rip
	wrgsbase %r12
	mov	T_STACK_TOP(%r12), %rsp
	mov	%r12, %rdi
	call	*above + ABOVE_CHILD(%rip)
	jmp	return_to_program
	.cfi_endproc
	.section .gate.patch
	clone_call clone_patch
	.section .gate.net
	clone_call clone_net
	.text

/* void thread_exit(bitmap, bit, status): give the block back, then end. */
	.globl thread_exit
thread_exit:
	movzbl	FRAME(F_TIER), %ecx	/* the block is not ours after btr */
	lock btrq %rsi, (%rdi)
	mov	%edx, %edi
	mov	$NR_EXIT, %eax
	test	%rcx, %rcx
	jne	thread_exit_net
	jmp	thread_exit_patch
	.section .gate.patch
thread_exit_patch:
	syscall
	hlt
	.section .gate.net
thread_exit_net:
	syscall
	hlt
	.text

/* The kernel enters here with every signal; C decides what becomes of it. */
	.globl signal_entry
	.globl signal_restorer
	.globl handler_asked
signal_entry:
	cld
	call	*above + ABOVE_SIGNAL(%rip)
signal_restore:
	add	$8, %rsp		/* the return address: the restorer */
signal_restorer:
	mov	$NR_RT_SIGRETURN, %eax
	syscall
	hlt

/*
 * TSan's sigaction has returned (handler_ask), and left on the stack what the program's handler
 * is: an address, or SIG_DFL or SIG_IGN, which are 0 and 1.
 */
handler_asked:
	mov	(%rsp), %rax
	add	$HANDLER_ROOM, %rsp
	cmp	$1, %rax
	jbe	1f
	jmp	*%rax
1:	ret

	.section .note.GNU-stack, "", @progbits
