/*
 * What the program calls in the place of a library's function: notes the call, looks at the
 * libraries' memory if that is due, and goes on to the function.  It is as if it were not there:
 * the return address and all registers but r10 and r11 are the caller's.
 */
#include "engine/checkpoint/runtime/library.h"

#define STATE_WATCH	5
#define STATE_CALLED	7
#define CALLS		library_calls@tpoff

	.text
	.balign	16
	.globl	library_thunks
	.hidden	library_thunks
	.type	library_thunks, @object
library_thunks:
	.set	n, 0
	.rept	LIBRARY_FUNCTIONS
	.org	library_thunks+LIBRARY_THUNK*n
	lea	library_targets+8*n(%rip), %r11
	jmp	called
	.set	n, n + 1
	.endr
	.size	library_thunks, .-library_thunks

/* r11: where the function's address is. */
	.balign	16
	.type	called, @function
called:
	.cfi_startproc
	movb	$1, checkpoint_state+STATE_CALLED(%rip)
	cmpb	$0, checkpoint_state+STATE_WATCH(%rip)
	jne	look
looked:
	mov	%rsp, %r10
	sub	%fs:own_stack@tpoff, %r10
	cmp	%fs:own_stack@tpoff+8, %r10
	jae	foreign			/* a handler's stack, a coroutine's */
again:
	mov	%fs:CALLS, %r10
1:	cmp	%rsp, %fs:CALLS+8(%r10)
	ja	2f
	sub	$16, %r10		/* that one has returned */
	jmp	1b
2:	cmp	$16*(LIBRARY_CALLS-1), %r10
	jae	full
	mov	%rsp, %fs:CALLS+24(%r10)
	push	(%rsp)
	.cfi_adjust_cfa_offset 8
	pop	%fs:CALLS+32(%r10)
	.cfi_adjust_cfa_offset -8
	add	$16, %r10
	mov	%r10, %fs:CALLS
	/* A handler that came before that has put its own there; one that comes now is above. */
	cmp	%rsp, %fs:CALLS+8(%r10)
	jne	again
go:	jmp	*(%r11)

look:	push	%r11
	.cfi_adjust_cfa_offset 8
	call	library_look
	pop	%r11
	.cfi_adjust_cfa_offset -8
	jmp	looked

full:	push	%r11
	.cfi_adjust_cfa_offset 8
	call	library_full
	pop	%r11
	.cfi_adjust_cfa_offset -8
	jmp	again

foreign:
	push	%r11
	.cfi_adjust_cfa_offset 8
	call	library_foreign
	pop	%r11
	.cfi_adjust_cfa_offset -8
	jmp	go
	.cfi_endproc
	.size	called, .-called

	.hidden	library_look, library_full, library_foreign, library_targets
	.hidden	checkpoint_state, own_stack, library_calls
	.section .note.GNU-stack, "", @progbits
