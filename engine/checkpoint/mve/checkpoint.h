/*
 * Checkpoints of a program's own memory, for programs that mve-cc has built
 * (docs/checkpoints.md).
 *
 * A checkpoint is opened, and from then on the bytes that the program changes are kept as
 * they were.  It ends in one of two ways: it is dropped, and what was written stays; or it is
 * restored, and the program stands again where it opened it, with the memory, the stack and
 * the mappings of then.  What the kernel holds (descriptors, what was sent) is not undone.
 *
 * A checkpoint is the whole process': while one is opened, dropped or restored no other
 * thread of the program may be storing.  In between any thread may.
 */
#ifndef MVE_CHECKPOINT_H
#define MVE_CHECKPOINT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Limit (Checkpoints): checkpoints that are open at one time, each within the one before.
 * Beyond: opening one is refused with -EMFILE. */
#define MVE_CHECKPOINT_DEPTH	16

/*
 * Opens a checkpoint, within those that are open.  Returns twice, as setjmp does: 0 now, and
 * 1 once it has been restored; it is then closed.  A negative errno where it could not be
 * opened; mve_checkpoint_why() has the words.
 */
int mve_checkpoint_open(void) __attribute__((returns_twice));

/* Closes the newest checkpoint; what was written since belongs to the one around it.
 * -ENOENT: none is open. */
int mve_checkpoint_drop(void);

/* Goes back to the newest checkpoint.  Returns only where that cannot be: -ENOENT, none is
 * open; -ENOSPC or another errno, it was lost (see why), and is dropped.  May be called by
 * a handler of a signal: then the thread's mask should be made what it was in between. */
int mve_checkpoint_restore(void);

/* How many are open. */
int mve_checkpoint_depth(void);

/* Why the last call failed, in words; "" if none did. */
const char *mve_checkpoint_why(void);

struct mve_checkpoint_counts {
	unsigned long opened, restored, dropped, lost;
	unsigned long regions;		/* saved, in all */
	unsigned long wipes;		/* of the tags, as epochs ran over */
	unsigned long log_most;		/* bytes of the log that one checkpoint needed */
	unsigned long pages;		/* of libraries, copied */
	unsigned long looks;		/* at the memory of libraries */
	unsigned long ahead;		/* of the regions: saved as one was opened */
};

void mve_checkpoint_counts(struct mve_checkpoint_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
