/*
 * Offsets into a thread's private block, which GS points at while a program
 * runs under mve.  The gate (assembly), the boards that the planner writes
 * (machine code) and the inside (C, struct thread) must agree on them:
 * engine/inside/gate/thread.h asserts that the C structure has these offsets.
 *
 * Raise THREAD_LAYOUT when an offset changes: boards written for one layout
 * must never meet a gate of another.
 */
#ifndef MVE_ABI_THREAD_H
#define MVE_ABI_THREAD_H

#define THREAD_LAYOUT	7

#define T_SELF		0x00	/* address of the block itself */
#define T_GATE		0x08	/* where a board jumps: gate_patch */
#define T_HANDLERS	0x10	/* the role: one code address per slot */
#define T_COUNTS	0x18	/* this thread's counts in the session area */
#define T_STACK_TOP	0x20	/* top of the inside's own stack */
#define T_TELLS		0x28	/* eight bytes, of which these are some: LANE_TELLS */
#define T_PENDING	0x28	/* 1 when a signal waits for the boundary */
#define T_HAS_LANE	0x29	/* 1 when it tells a stream, or is told by one */
#define T_FOLLOWING	0x2a	/* 1 when it is told */
#define T_DEFERRED	0x2b	/* 1 when a signal waits for a call to begin */
#define T_FAULTING	0x2c	/* not 0 in the handler of a fault */
#define T_KEPT		0x2d	/* 1 when it is at a connection that is not told */
#define T_HOLDS		0x2e	/* 1 when others may stand until it has told something: tick.c */
#define T_UNHEARD	0x2f	/* 1 when nobody follows */
#define T_FRAME		0x30	/* struct frame: the registers of the call */
#define T_R15		0xc0	/* the short way: the program's r15 */
#define T_ASKED_SEQ	0xc0	/* the asked way: the number that the call has, or 0 */
#define T_FLAGS		0xc8	/* the short way: r11 as the kernel left it */
#define T_LOCK_GATE	0xd0	/* where the board of a hooked function jumps */
#define T_ONCE		0xd8	/* what pthread_once is to run: see lock_gate.S */
#define T_MADE		0xe0	/* the kernel's answer to the call that is served */
#define T_BEGAN		0xe8	/* when the last call came that time ends: rest.c */
#define T_BUSY		0xf0	/* 1 while C code of the inside runs */
#define T_AWAY		0xf1	/* 1 where it shows ticks before it goes on: tick.c */
#define BUSY_NOT_AWAY	1	/* both of them, as they are written in one piece */

/* Offsets inside struct frame. */
#define F_RAX		0x00
#define F_RDI		0x08
#define F_RSI		0x10
#define F_RDX		0x18
#define F_R10		0x20
#define F_R8		0x28
#define F_R9		0x30
#define F_RBX		0x38
#define F_RBP		0x40
#define F_R12		0x48
#define F_R13		0x50
#define F_R14		0x58
#define F_R15		0x60
#define F_RSP		0x68	/* the program's stack pointer at its call */
#define F_FLAGS		0x70
#define F_RESUME	0x78	/* where the gate goes when the call is done */
#define F_SITE_END	0x80	/* the address after the program's `syscall` */
/* Behind it eight bytes that the gate writes in one piece: */
#define F_SLOT		0x88	/* two: slot of the table: call number + 1, 0 unknown */
#define F_TIER		0x8a	/* one: TIER_PATCH or TIER_NET; five are 0 when a call begins */
#define F_ANNOUNCED	0x8e	/* one: the stream says that a signal comes */

#define T_STACK		0x7000	/* what T_STACK_TOP says, in the block */

/*
 * The eight bytes at T_TELLS where a call goes the told way: it has a lane, and leads; no signal
 * waits, no fault is under way, and it is at nothing that is not told.  (Not T_BUSY, too: it has
 * just been written, and a wider load would have to wait for that.)
 */
#define LANE_TELLS	0x100
#define TELLS_THREADS	1	/* enum tell_off: the process has threads */

#define HANDLER_ROOM	256	/* for libc's struct sigaction, above a handler's frame */

/*
 * A board is the piece of code that a patched site jumps to.  It ends with
 *	lea resume(%rip),%rcx ; jmp *%gs:T_GATE ; .quad site_end ; resume: ...
 * so the gate finds the site's own return address 8 bytes before the address
 * that it resumes at.
 */
#define BOARD_SITE_END	(-8)

#endif
