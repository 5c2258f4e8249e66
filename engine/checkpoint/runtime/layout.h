/*
 * Where a checkpoint's memory lies.
 *
 * The address space of a program that is position independent begins at 0x5500'0000'0000; what
 * was mapped for it below 4 GiB is known, too.  The tag of a byte is found by a shift and an
 * addition of what fits into an instruction's displacement:
 *
 *	tag of p = TAGS_AT + (p >> REGION_SHIFT)
 *
 * so the tags lie at 0xAA'1000'0000 and on (128 bytes a region).  Tags of what is not the
 * program's are not mapped: the check before a wild store into the tags or the log faults.
 */
#ifndef MVE_CHECKPOINT_LAYOUT_H
#define MVE_CHECKPOINT_LAYOUT_H

#include <stdint.h>
#include "engine/checkpoint/runtime/tags.h"

#define must_failed mve_checkpoint_failed
#include "engine/core/must.h"

#ifndef REGION_BYTES
#define REGION_BYTES	128
#endif
#define REGION		((uintptr_t)REGION_BYTES)
#define REGION_SHIFT	__builtin_ctzl(REGION_BYTES)

#define LOW_END		(1ul << 32)
#define HIGH_BEGIN	0x550000000000ul
#define HIGH_END	0x800000000000ul
#define LOG_AT		0x8000000000ul		/* 512 GiB: below all tags */

/* Limit (Checkpoints): bytes of what the open checkpoints have saved.  Beyond: they are
 * lost: restoring says so, the program goes on. */
#define LOG_MAX		(1ul << 30)

/* Limit (Checkpoints): bytes of the log that are kept from one checkpoint to the next.
 * Beyond: they are given back to the kernel. */
#define LOG_KEPT	(4ul << 20)

/* Limit (Checkpoints): regions that are saved as a checkpoint is opened, for the last ones have
 * written them.  Beyond: they are saved as they are written. */
#define HOT_MAX		512

/* So much of the stack that does not stand yet needs no look either. */
#define STACK_AHEAD	(16ul << 10)

_Static_assert(REGION >= 32 && REGION <= 512 && REGION == 1ul << REGION_SHIFT,
	       "32 to 512 bytes");

static inline uint8_t *tag_of(uintptr_t at)
{
	return (uint8_t *)(TAGS_AT + (at >> REGION_SHIFT));
}

#endif
