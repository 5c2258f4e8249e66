/*
 * Lock order: what the hooks in a program's libc (outside/hook*.c write them), the
 * lock gate (inside/locks/lock_gate.S, locks.c) and a stream's EVENT_LOCK have in common.
 *
 * A hooked function begins with a jump to its entry board:
 *
 *	mov	$kind,%eax
 *	lea	original(%rip),%r11
 *	jmp	*%gs:T_LOCK_GATE
 *	.quad	relock			HOOK_* from `original`
 *	.quad	undo
 *	.quad	error
 * original:
 *	<the instructions that the jump took the place of>
 *	jmp	<behind them>
 *
 * relock: pthread_mutex_lock without its hook, for the kinds that wait; undo: see
 * locks.def; error: __errno_location, for the kinds that set errno; for those that
 * wait 1 if the functions that wake are hooked, too; for what runs once 1 if it is a
 * sanitizer's; 0 else.
 *
 * Raise EVENT_VERSION when the number of a kind changes, THREAD_LAYOUT when the
 * board does.
 */
#ifndef MVE_ABI_LOCKS_H
#define MVE_ABI_LOCKS_H

#define HOOK_RELOCK	(-24)
#define HOOK_UNDO	(-16)
#define HOOK_ERROR	(-8)

/* What the entry board of a function that begins a request calls; behind LOCK_LATER. */
#define SEAM_HERE	504

/* Where groups of kinds end and begin, for assembly. */
#define LOCK_ONCE_LAST	2
#define LOCK_COND_LAST	5
#define LOCK_TAKE_FIRST	6	/* kinds that take a lock, and do no more than that */
#define LOCK_TAKE_LAST	23
#define LOCK_WAKE_FIRST	25	/* kinds of which a follower takes note, and nobody is told */
#define LOCK_INIT_FIRST	27

#ifndef __ASSEMBLER__
#include <stdint.h>

enum lock_kind {
	LOCK_NONE,
#define LOCK(kind, ...) LOCK_##kind,
#include "engine/abi/locks.def"
	LOCK_KINDS
};

_Static_assert(LOCK_GUARD == LOCK_ONCE_LAST && LOCK_COND_CLOCKWAIT == LOCK_COND_LAST &&
	       LOCK_COND_SIGNAL == LOCK_WAKE_FIRST && LOCK_MUTEX_INIT == LOCK_INIT_FIRST, "groups");
_Static_assert(LOCK_MUTEX_LOCK == LOCK_TAKE_FIRST && LOCK_SEM_CLOCKWAIT == LOCK_TAKE_LAST,
	       "those of the hows before LOCK_BY_COND: lock_told");

enum lock_how {
	LOCK_BY_PLAIN,	/* waits until it has it; an error number otherwise */
	LOCK_BY_TRY,	/* the same, but never waits */
	LOCK_BY_SEM,	/* waits; -1 and errno otherwise */
	LOCK_BY_SEM_TRY,
	LOCK_BY_COND,	/* gives its second argument up, and has it again */
	LOCK_BY_ONCE,	/* runs its second argument in one thread */
	LOCK_BY_GUARD,	/* 1 in the thread that is to initialise */
	LOCK_BY_RESULT,	/* takes nothing: only what it returned is told */
	LOCK_BY_WAKE,	/* no lock, and not told: wakes who waits for a condition */
	LOCK_BY_INIT,	/* likewise: another lock is in this place from now on */
};

/*
 * In an EVENT_LOCK: call is the kind, result the function's; arg[0] the bucket or
 * LOCK_NO_TURN, arg[1] the turn, arg[2] the lock's address, arg[3] errno.
 */
#define LOCK_BUCKETS	1024u
#define LOCK_ONCE_BUCKET LOCK_BUCKETS	/* one more, for all that runs once */
#define LOCK_BATON_BUCKET (LOCK_BUCKETS + 1)	/* and one for whose turn it is to work */
#define LOCK_NO_TURN	(~0ull)

#endif
#endif
