/*
 * What the pass calls.  The registers are all kept, so that a store's surroundings are compiled
 * as if there were no call.
 */
#ifndef MVE_CHECKPOINT_SAVE_H
#define MVE_CHECKPOINT_SAVE_H

#include <stddef.h>
#include <stdint.h>

#define SAVES	__attribute__((preserve_all))

/* The newest open checkpoint's epoch, 0 if there is none: what each check looks at first. */
extern uint8_t mve_checkpoint_epoch;

/* Saves the region of a byte, or those of a range, that are not saved yet. */
SAVES void mve_checkpoint_save(const void *at);
SAVES void mve_checkpoint_save_range(const void *at, size_t size);

/* The same for checks (pass/emit.cc): with the address in r11 and the size in r10, which are kept
 * as well, on a stack that need not be aligned.  Of a word of 4 or 8 bytes the size is in the name,
 * so that it takes no room where it is called. */
void mve_checkpoint_save_at(void);
void mve_checkpoint_save_4_at(void);
void mve_checkpoint_save_8_at(void);
void mve_checkpoint_save_range_at(void);

/* The same for a range that is to be zero: what of it is zero already is not changed, so it is not
 * saved. */
void mve_checkpoint_save_zeros_at(void);

/* The same where no more than this is written, but any number may be said: as far as what lies
 * there goes. */
SAVES void mve_checkpoint_save_most(const void *at, size_t size);
void mve_checkpoint_save_most_at(void);

/* A region was saved whose tag is of the epoch before: HOT, if it is hot (ahead.c). */
SAVES uintptr_t ahead_hot(uintptr_t region);

/* For comparison: -mve-undo, and what -mve-no-checks leaves of the known functions. */
SAVES void mve_checkpoint_log(const void *at, size_t size);
SAVES void mve_checkpoint_touch(const void *at, size_t size);

#endif
