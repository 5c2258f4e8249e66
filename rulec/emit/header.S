/* The contract, and the search in long lists, as text: pasted into generated C. */
	.section .rodata
	.globl rules_header, rules_header_len
rules_header:
	.incbin "engine/abi/rules.h"
1:
	.balign 4
rules_header_len:
	.long 1b - rules_header
	.globl find_header, find_header_len
find_header:
	.incbin "rulec/emit/find.h"
1:
	.balign 4
find_header_len:
	.long 1b - find_header
	.section .note.GNU-stack, "", @progbits
