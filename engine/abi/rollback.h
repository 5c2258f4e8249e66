/*
 * What the inside and the runtime of a program that mve-cc has built (engine/checkpoint) have in
 * common, to take a request back: `mve run --rollback`.  The structure is the runtime's, in pages
 * that do not go back, under the name ROLLBACK_NAME among the program's dynamic symbols; the
 * monitor finds it there and names it in the boot.
 *
 * The runtime opens a checkpoint where a request begins, and says so here.  The inside sees a
 * fault first: it sends the thread to `go`, on a stack of its own, and that asks by
 * ROLLBACK_CALL whether it may.  Nobody else than the thread and its process' inside writes here.
 */
#ifndef MVE_ABI_ROLLBACK_H
#define MVE_ABI_ROLLBACK_H

#include <stdint.h>

#define ROLLBACK_NAME		"mve_checkpoint_rollback"
/* The runtime's own calls, which are no business of a twin's: from here on. */
#define ROLLBACK_KERNEL		"mve_checkpoint_kernel"
#define ROLLBACK_KERNEL_END	3	/* bytes: it ends by the call, and a ret */

#define ROLLBACK_SIGN		0x6b63616265766dull	/* "mveback" */
#define ROLLBACK_VERSION	4u

/* A number that no kernel has; its first argument is one of the words below. */
#define ROLLBACK_CALL		0x6d76

enum rollback_word {
	ROLLBACK_ASK,		/* the request has failed: 1, take it back; 0: die of it */
	ROLLBACK_DONE,		/* it is taken back; `bytes` is as it came */
	ROLLBACK_NOT,		/* it is not after all; why: words */
	ROLLBACK_ENDS,		/* of a follower: the request is about to be over; where its
				   leader's was taken back this does not return */
	ROLLBACK_BEGUN,		/* the process' first request has a checkpoint */
	ROLLBACK_KNOWN,		/* one came that has been taken back before: it was refused */
	ROLLBACK_NEVER,		/* there are no checkpoints any more; why: words */
	ROLLBACK_OTHERS,	/* of a follower: how far its other threads have read, in all;
				   below 0: one of them does not wait.  1: a request begins */
};

/* Calls that bring a request, where the user has named them (--mark), on whatever descriptor. */
enum rollback_brings {
	BRINGS_READ = 1, BRINGS_READV = 2, BRINGS_RECVFROM = 4, BRINGS_RECVMSG = 8,
};

/* Limit (Checkpoints): descriptors that a request opens.  Beyond: it is not taken back. */
#define ROLLBACK_OPENED		64

struct rollback {
	uint64_t sign;
	uint32_t version;
	uint32_t held;		/* the inside: it sees to faults, from the program's start on */
	uint32_t open;		/* a request's checkpoint is */
	int32_t owner;		/* the thread whose requests they are */
	uint64_t ended;		/* why there is none: words */
	uint64_t go, stack;	/* where a fault leads; 0: not yet */
	uint64_t bytes, size;	/* what came, in the memory that goes back */
	int32_t fd;		/* and on which connection */
	uint32_t handlers;	/* the inside: of signals, that run now */
	uint32_t handlers_then;	/* as the request began */
	uint32_t opened;	/* the inside: rows of `number`, since then */
	uint64_t spoilt;	/* the inside: what cannot go back has happened: words; or 0 */
	int32_t number[ROLLBACK_OPENED];	/* descriptors that the request has opened */
	uint64_t reply, reply_size;	/* the inside: what its connection gets; or 0 */
	uint32_t refuse;	/* and whether one that is known is refused */
	uint32_t follows;	/* the inside: the request's end is the leader's affair */
	uint32_t brings;	/* and by which calls requests come; 0: on connections, by all */
	int32_t kernel[3];	/* the runtime's own descriptors, each version's; 0: none */
	struct { uint64_t from, to; } own[2];	/* the inside's memory, which stays as it is */
};

#endif
