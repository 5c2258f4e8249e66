/* The contract, as text: it is pasted into every generated file. */
	.section .rodata
	.globl rules_header, rules_header_len
rules_header:
	.incbin "engine/abi/rules.h"
1:
	.balign 4
rules_header_len:
	.long 1b - rules_header
	.section .note.GNU-stack, "", @progbits
