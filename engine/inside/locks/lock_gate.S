/*
 * The lock gate: where the hooked functions of engine/abi/locks.def begin.
 *
 * It runs as a function of the program, on the program's stack: rax holds the
 * kind, r11 the function without its hook, all else is as its caller left it.
 * While the process has one thread, or nobody follows (record/quiet.c), and in a thread that
 * has no lane, it is two jumps.
 *
 * A leader calls the function, then tells of it (LOCK_TOOK).  A follower asks
 * first (LOCK_ASK), which waits for the leader's event and for the turn that it
 * names.  Both are calls to the gate, as if by a site: so signals, parking and a
 * change of who leads come there, between two instructions of the program, and
 * nothing is half done.  Where there is nothing to wait for, the same C code is
 * reached on a shorter way (`stack_quick`), and what a leader mostly tells on one that is shorter
 * still (lock_told).  A fault or an unwinding goes through here as through
 * any other function.
 *
 * No vector register is touched: the functions take and return none, but what
 * runs them may keep something there.
 */
#include "engine/abi/boot.h"
#include "engine/abi/thread.h"
#include "engine/inside/locks/lock_gate.h"

	.hidden boot, local_span, locks_led, lock_told, lock_took, lock_ask_now
	.hidden stack_quick, stack_window
	.hidden lock_wait_begin, lock_wait_end, lock_wake, lock_renewed, before_over

#define ARG(i)	(L_ARG + 8 * (i))(%rsp)

/* Changes rax, rcx and r11 only. */
.macro inside_call nr
	mov	$\nr, %eax
	lea	9f(%rip), %rcx
	jmp	*%gs:T_GATE
	.quad	0
9:
.endm

/* The same for lock_took and lock_ask_now: C without the long way. */
.macro inside_quick fn
	lea	\fn(%rip), %rax
	call	stack_quick
.endm

/* Of kinds that are given three arguments at most, and have not failed yet. */
.macro frame_take
	sub	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset L_SIZE
	mov	%rdi, ARG(0)
	mov	%rsi, ARG(1)
	mov	%rdx, ARG(2)
	mov	%r11, L_BOARD(%rsp)
	mov	%rax, L_KIND(%rsp)	/* no state yet */
.endm

.macro frame_open
	frame_take
	mov	%rcx, ARG(3)
	movq	$0, L_ERROR(%rsp)
.endm

/* What an allocator locks is its own affair, as its calls are: local_code(). */
.macro local_pass
	mov	(%rsp), %r10
	cmp	local_span(%rip), %r10
	jbe	7f
	cmp	local_span + 8(%rip), %r10
	ja	7f
	.irp	i, 0, 1, 2, 3, 4, 5, 6, 7
	cmp	boot + BOOT_LOCAL + 16 * \i(%rip), %r10
	jb	8f
	cmp	boot + BOOT_LOCAL + 16 * \i + 8(%rip), %r10
	jb	alone
8:
	.endr
7:
.endm

.macro args_load
	mov	ARG(0), %rdi
	mov	ARG(1), %rsi
	mov	ARG(2), %rdx
	mov	ARG(3), %rcx
	mov	L_BOARD(%rsp), %r11
.endm

	.text
	.globl lock_gate, lock_alone, lock_gate_led
lock_alone:			/* from here to lock_gate_led: see begins_at */
	.cfi_startproc
alone:	jmp	*%r11
	.balign 16
lock_gate:
	cmpb	$0, locks_led(%rip)
	je	alone
	cmpq	$LANE_TELLS, %gs:T_TELLS
	jne	lock_other
	local_pass
	lea	-LOCK_TAKE_FIRST(%rax), %r10d
	cmp	$(LOCK_TAKE_LAST - LOCK_TAKE_FIRST), %r10d
	ja	lock_other
	/*
	 * A leader takes a lock: mostly it has it then, and nothing else is to be said.  That
	 * needs no stack of ours.
	 */
	frame_take
	.cfi_remember_state
	movb	$1, %gs:T_AWAY
	call	*%r11
	.globl lock_led_taken
lock_led_taken:			/* see call_within */
	test	%eax, %eax
	jne	taken_not
	movw	$BUSY_NOT_AWAY, %gs:T_BUSY
	mov	%rsp, %rdi
	call	lock_told
	test	%rax, %rax
	jne	told_rest
	.globl told_window, told_window_end, told_held
told_window:
	cmpb	$0, %gs:T_PENDING
	jne	told_held
	movb	$0, %gs:T_BUSY
told_window_end:
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	ret

	.cfi_restore_state
	.cfi_remember_state
told_held:
	call	stack_window
	xor	%eax, %eax
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	ret

	.cfi_restore_state
	.cfi_remember_state
taken_not:
	movq	$0, L_ERROR(%rsp)
	jmp	lock_led

	.cfi_restore_state
	.cfi_remember_state
told_rest:
	movq	$0, L_RESULT(%rsp)
	movq	$0, L_ERROR(%rsp)
	cmpb	$0, %gs:T_DEFERRED
	jne	told_slow
	call	stack_quick
	jmp	told_how

	.cfi_restore_state
	.cfi_adjust_cfa_offset -L_SIZE
lock_other:
	cmpb	$0, %gs:T_HAS_LANE
	je	alone
	local_pass
	cmp	$LOCK_ONCE_LAST, %eax
	jbe	once_gate
	cmp	$LOCK_WAKE_FIRST, %eax
	jae	wake_gate
lock_gate_led:
	frame_open
	.cfi_remember_state
	cmpb	$0, %gs:T_FOLLOWING
	jne	follow

lead:	movb	$1, %gs:T_AWAY
	call	*%r11
	.globl lock_led
lock_led:			/* see call_within */
	movb	$0, %gs:T_AWAY
	mov	%rax, L_RESULT(%rsp)
	cmp	$-1, %eax
	je	error_note
told:	cmpb	$0, %gs:T_DEFERRED
	jne	told_slow
	inside_quick lock_took
told_how:
	cmp	$TOOK_REDO, %eax
	jae	redo
	mov	L_RESULT(%rsp), %rax
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	ret

	.cfi_restore_state
	.cfi_remember_state
told_slow:
	inside_call LOCK_TOOK
	jmp	told_how

	/* Of the kinds that set errno. */
	.cfi_restore_state
	.cfi_remember_state
error_note:
	mov	L_BOARD(%rsp), %r11
	mov	HOOK_ERROR(%r11), %rax
	test	%rax, %rax
	je	told
	call	*%rax
	mov	(%rax), %eax
	mov	%rax, L_ERROR(%rsp)
	jmp	told

	/* It was taken while this thread still led: in order now. */
redo:	ja	follow
	cmpl	$LOCK_COND_LAST, L_KIND(%rsp)
	jbe	follow
	mov	L_BOARD(%rsp), %r11
	mov	HOOK_UNDO(%r11), %rax
	test	%rax, %rax
	je	follow
	mov	ARG(0), %rdi
	call	*%rax

follow:	cmpl	$LOCK_COND_LAST, L_KIND(%rsp)
	jbe	follow_wait
	inside_quick lock_ask_now
	cmp	$ASK_SLOW, %eax
	jne	asked
	inside_call LOCK_ASK
asked:	cmp	$ASK_LEAD, %eax
	jb	ordered
	je	lead_now
	cmp	$ASK_GIVEN, %eax
	je	given
unordered:
	args_load
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	jmp	*%r11

	.cfi_restore_state
	.cfi_remember_state
lead_now:
	args_load
	jmp	lead

ordered:
	args_load
	call	*%r11
	mov	%rax, L_RESULT(%rsp)
	inside_quick lock_took
	cmp	$TOOK_AGAIN, %eax
	je	ordered
	mov	L_RESULT(%rsp), %rax
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	ret

	.cfi_restore_state
	.cfi_remember_state
given:	cmpl	$-1, L_RESULT(%rsp)
	jne	2f
	mov	L_BOARD(%rsp), %r11
	mov	HOOK_ERROR(%r11), %rax
	test	%rax, %rax
	je	2f
	call	*%rax
	mov	L_ERROR(%rsp), %ecx
	mov	%ecx, (%rax)
2:	mov	L_RESULT(%rsp), %rax
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	ret

	/*
	 * A wait of a follower: its mutex is given up until the leader's is over.
	 * Nobody waits for the condition itself; who would be woken is noted, for
	 * the day that this version leads: then the others wait for it in earnest.
	 */
	.cfi_restore_state
	.cfi_remember_state
follow_wait:
	inside_quick lock_wait_begin
	mov	L_BOARD(%rsp), %r11
	mov	ARG(1), %rdi
	call	*HOOK_UNDO(%r11)
	test	%eax, %eax
	je	3f
	orl	$STATE_KEPT, L_STATE(%rsp)
3:	inside_call LOCK_ASK
	mov	%rax, L_ERROR(%rsp)
	testl	$STATE_KEPT, L_STATE(%rsp)
	jne	4f
	mov	L_BOARD(%rsp), %r11
	mov	ARG(1), %rdi
	call	*HOOK_RELOCK(%r11)
4:	inside_quick lock_wait_end
	test	%eax, %eax
	jne	lead_now
	cmpl	$ASK_UNORDERED, L_ERROR(%rsp)
	je	unordered
	movq	$0, L_ERROR(%rsp)
	inside_call LOCK_TOOK
	mov	L_RESULT(%rsp), %rax
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	ret

	/* What wakes, or makes a lock: noted, then called. */
	.cfi_restore_state
	.cfi_adjust_cfa_offset -L_SIZE
wake_gate:
	cmpb	$0, %gs:T_FOLLOWING
	je	alone
	frame_open
	cmp	$LOCK_INIT_FIRST, %eax
	jae	1f
	inside_quick lock_wake
	jmp	unordered
1:	inside_quick lock_renewed
	jmp	unordered
	.cfi_endproc

/* Where a function returns that was begun before it was hooked: see before.c. */
	.globl lock_late
	.balign 16
lock_late:
	push	%rax			/* struct late_return */
	push	%rax
	push	%rax
	push	%rax
	inside_quick before_over
	pop	%rcx
	pop	%rdi
	test	%rax, %rax
	jne	6f
	pop	%rax
	ret
6:	pop	%r10
	test	%ecx, %ecx
	jne	8f
	jmp	*%rax
	/* As if the gate had called it. */
8:	mov	%rax, %r11
	mov	%ecx, %eax
	.cfi_startproc
	frame_open
	mov	%r10, %rax
	jmp	lock_led
	.cfi_endproc

/*
 * What runs once.  A leader's pthread_once is given once_init to run: it tells
 * that this thread runs the program's function now, and goes on there.
 */
	.balign 16
once_gate:
	.cfi_startproc
	cmp	$LOCK_ONCE_LAST, %eax
	je	guard_gate
	cmpl	$2, (%rdi)		/* it has been run: in glibc and musl */
	je	straight
	cmpb	$0, %gs:T_FOLLOWING
	jne	once_follow
once_lead:
	push	%gs:T_ONCE
	.cfi_adjust_cfa_offset 8
	mov	%rsi, %gs:T_ONCE
	lea	once_init(%rip), %rsi
	call	*%r11
	.globl lock_once_back
lock_once_back:
	pop	%gs:T_ONCE
	.cfi_adjust_cfa_offset -8
	ret
straight:
	jmp	*%r11

guard_gate:
	cmpb	$0, (%rdi)
	jne	straight
	cmpb	$0, %gs:T_FOLLOWING
	jne	once_follow
guard_lead:
	frame_open
	.cfi_remember_state
	call	*%r11
	mov	%rax, L_RESULT(%rsp)
	test	%eax, %eax
	je	5f
	inside_call LOCK_TOOK
5:	mov	L_RESULT(%rsp), %rax
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	ret

	.cfi_restore_state
	.cfi_adjust_cfa_offset -L_SIZE
once_follow:
	frame_open
	inside_call LOCK_ASK
	args_load
	mov	L_KIND(%rsp), %ecx
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	cmp	$ASK_LEAD, %eax
	ja	straight
	cmp	$LOCK_ONCE_LAST, %ecx
	je	guard_lead
	jmp	once_lead
	.cfi_endproc

	.balign 16
once_init:
	.cfi_startproc
	xor	%r11d, %r11d
	mov	$(LOCK_ONCE_LAST - 1), %eax
	frame_open
	inside_call LOCK_TOOK
	add	$L_SIZE, %rsp
	.cfi_adjust_cfa_offset -L_SIZE
	jmp	*%gs:T_ONCE
	.cfi_endproc
	.globl lock_gate_end
lock_gate_end:

	.section .note.GNU-stack, "", @progbits
