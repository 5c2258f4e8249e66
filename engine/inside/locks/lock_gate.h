/*
 * What lock_gate.S and C share: the numbers of the calls that the lock gate makes of the
 * gate, their answers, and offsets in a hooked call on the program's stack.
 */
#ifndef MVE_INSIDE_LOCK_GATE_H
#define MVE_INSIDE_LOCK_GATE_H

#include "engine/abi/locks.h"

/* Numbers beyond the table's; from the inside only: see lock_asked(). */
#define LOCK_CALLS	500
#define LOCK_ASK	500	/* a follower, before it calls the function */
#define LOCK_TOOK	501	/* the function has returned */
#define LOCK_BOUNDARY	502	/* a signal waits, and the event says so */
#define LOCK_LATER	503	/* one waits that came behind that */

/* Answers to LOCK_ASK. */
#define ASK_ORDERED	0	/* call it, and say LOCK_TOOK */
#define ASK_LEAD	1	/* this thread leads now */
#define ASK_UNORDERED	2	/* call it; the stream knows nothing of it */
#define ASK_GIVEN	3	/* return the leader's result */
#define ASK_SLOW	4	/* it must be waited for */

/* Answers to LOCK_TOOK. */
#define TOOK_DONE	0
#define TOOK_AGAIN	1	/* call it again */
#define TOOK_REDO	2	/* this thread follows now: give it up, and ask */
#define TOOK_ASK	3	/* the same, with nothing to give up */

/* Offsets in struct lock_call. */
#define L_ARG		0
#define L_BOARD		32
#define L_KIND		40
#define L_STATE		44
#define L_RESULT	48
#define L_ERROR		56
#define L_SIZE		104	/* with the return address, a multiple of 16 */

#define STATE_ASKED	1
#define STATE_KEPT	2	/* a wait that could not give the mutex up */
#define STATE_SIGNAL	4	/* the leader's handler ran behind it */
#define STATE_OWN	8	/* the stream knows nothing of it: its own result counts */

#endif
