/*
 * Who serves: what a thread is, alone, leader or follower, and how a process or program begins
 * is the affair of roles/, above all other rooms.  Below, it is called by this table alone.
 *
 * start.c fills it in: an image without relocations has no ready-made table of functions.
 */
#ifndef MVE_INSIDE_ABOVE_H
#define MVE_INSIDE_ABOVE_H

/* Offsets in struct above. */
#define ABOVE_CALL	0
#define ABOVE_EXIT	8
#define ABOVE_SIGNAL	16
#define ABOVE_CHILD	24
#define ABOVE_FAILED	32

/* A clock that is read on the program's stack (vdso.S): offsets in struct clock_call. */
#define CLOCK_ARG	0
#define CLOCK_VALUE	16
#define CLOCK_SIZE	40	/* with the return address, a multiple of 16 */
#define CLOCK_LONG	1	/* nothing has been told of it: through the gate */

/*
 * Clocks that the kernel's vDSO reads, as bits of their numbers.  For any other it makes a call,
 * which is held as every call is: not from in here.
 */
#define VDSO_CLOCKS	0x8f3

#ifndef __ASSEMBLER__
#include "engine/inside/gate/thread.h"

struct ucontext_raw;

struct above {
	void (*call)(struct thread *t);		/* serves the call in the frame */
	void (*exit)(struct thread *t);		/* it is served, and a signal waits */
	void (*signal)(int sig, uint8_t *info, struct ucontext_raw *uc);
	void (*child)(struct thread *t);	/* a new thread's first code */
	void (*failed)(struct thread *t);	/* instead of the rest of a call: failed.c */
	long (*life)(struct thread *t, long nr);	/* a call that makes a thread or program */
	void (*ended)(struct thread *t);	/* a follower's stream, and all of it is read */
	/* The monitor wants it to. */
	void (*stand)(struct thread *t, struct ucontext_raw *uc);
	/* An image has gone on: processes are others; what its parent is by now, or 0. */
	int32_t (*moved)(struct thread *t, int32_t parent);
	/* All threads of a leader's process stand: makes its twin; false: that has been tried. */
	bool (*copy)(struct thread *t, uint32_t number);
	/* An instruction that asks the machine: a leader's is told; true: a follower's was. */
	bool (*soft)(struct thread *t, long nr, int64_t *value);
};

extern struct above above;

_Static_assert(offsetof(struct above, call) == ABOVE_CALL &&
	       offsetof(struct above, exit) == ABOVE_EXIT &&
	       offsetof(struct above, signal) == ABOVE_SIGNAL &&
	       offsetof(struct above, child) == ABOVE_CHILD &&
	       offsetof(struct above, failed) == ABOVE_FAILED, "as gate.S has them");

struct clock_call {
	uint64_t arg[2];	/* the program's */
	uint64_t value[2];	/* what was read */
	uint64_t pad;
};

_Static_assert(offsetof(struct clock_call, arg) == CLOCK_ARG &&
	       offsetof(struct clock_call, value) == CLOCK_VALUE &&
	       sizeof(struct clock_call) == CLOCK_SIZE, "as vdso.S has it");

/*
 * Tells what has been read, on the program's stack: 0, CLOCK_LONG, or the address of what is
 * still to be called, on ours.
 */
typedef uint64_t told_clock(struct clock_call *c);
/* By the function of the vDSO, those that read a time. */
extern told_clock *told_clocks[3];

#endif

#endif
