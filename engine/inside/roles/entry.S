/* The first instructions of the inside in a program. */
	.text
	.hidden inside_begin, return_to_program

/* The monitor starts a fresh image here: rdi and rsp are the first block's. */
	.globl inside_start
inside_start:
	.cfi_startproc
	.cfi_undefined rip
	wrgsbase %rdi
	call	inside_begin
	jmp	return_to_program
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
