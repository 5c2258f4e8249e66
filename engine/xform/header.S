/* The contract's text, which the C of a transformation begins with: nothing else is included. */
	.section .rodata
	.globl xform_header
xform_header:
	.incbin "engine/update/xform.h"
	.byte 0
	.section .note.GNU-stack,"",@progbits
