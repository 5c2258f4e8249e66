/* Where pages.c keeps what it keeps. */
#ifndef MVE_CHECKPOINT_PAGES_H
#define MVE_CHECKPOINT_PAGES_H

#include "engine/checkpoint/runtime/stacks.h"

#define PAGES_AT	(STACKS_AT + STACKS_MAX + 4096)
#define PAGES_MAX	(64ul << 10)

#define ASIDE_AT	(PAGES_AT + PAGES_MAX)

/* Limit (Checkpoints): pages of libraries that are written between the outermost checkpoint and
 * those within it.  Beyond: they are lost: restoring says so, the program goes on. */
#define ASIDE_MAX	16384ul
#define ASIDE_BYTES	(ASIDE_MAX * (4096 + 64))

#define COPIES_AT	(ASIDE_AT + ASIDE_BYTES)

/* Limit (Checkpoints): bytes of libraries' memory (with MVE_CHECKPOINT_WAY=scan of all).
 * Beyond: opening a checkpoint is refused with -E2BIG. */
#define COPIES_MAX	(128ul << 30)

/* A byte for each page. */
#define FOUND_AT	(COPIES_AT + COPIES_MAX)

#define KEPT_END	(FOUND_AT + COPIES_MAX / 4096)

/* The open checkpoints, of which some have not looked yet, may need what libraries' memory is now.
 * A negative errno. */
int pages_catch_up(int depth);

/* Before what was looked at is used: this may be a copy of the process that did, or one that has
 * closed all its descriptors. */
void pages_own(void);

/* If it could not be had in this process, it is tried once more. */
void pages_again(void);

/* A descriptor by a number that programs do not come to; the old one is closed. */
int number_high(int fd);

/* libc's heap has given a block: is it where its memory was? */
void pages_look(uintptr_t at);

#endif
