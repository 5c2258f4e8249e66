/*
 * Where a checkpoint's memory lies, and what an entry of the log is.
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

#include <stddef.h>
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
#define HABITS_BYTES	(4ul << 20)
#define HABITS_AT	(LOG_AT - 2 * HABITS_BYTES)

/* Limit (Checkpoints): bytes of what the open checkpoints have saved.  Beyond: they are
 * lost: restoring says so, the program goes on. */
#define LOG_MAX		(1ul << 30)

/* Limit (Checkpoints): bytes of the log that are kept from one checkpoint to the next.
 * Beyond: they are given back to the kernel. */
#define LOG_KEPT	(4ul << 20)

/* A region as it was.  Valid if its serial is that of the log's contents. */
struct entry {
	uintptr_t at;		/* in its low bits: HOT, or IN_LONG */
	uint64_t serial;
	unsigned char bytes[REGION_BYTES];
};

#define LOG		((struct entry *)LOG_AT)
#define LOG_ENTRIES	(LOG_MAX / sizeof(struct entry))

/* Many checkpoints running have saved it (ahead.c). */
#define HOT		1ul

/* It was saved with many beside it, which takes little for each: nothing is to be learnt of it. */
#define IN_LONG		2ul
#define LONG		(16 * REGION)

/* Limit (Checkpoints): regions that are saved as a checkpoint is opened, for all the last ones have
 * written them.  Beyond: they are saved as they are written. */
#define HOT_MAX		512

/* Limit (Checkpoints): regions that are saved as a checkpoint is opened for a connection, for the
 * last ones for it have written them.  Beyond: they are saved as they are written. */
#define HABIT_MAX	61

/* Limit (Checkpoints): connections of which it is known what their requests write.  Beyond: two
 * have one place, and what they write is saved as it is written. */
#define HABITS		4096ul

/* So much of the stack that does not stand yet needs no look either. */
#define STACK_AHEAD	(16ul << 10)

_Static_assert(REGION >= 32 && REGION <= 512 && REGION == 1ul << REGION_SHIFT,
	       "32 to 512 bytes");

static inline uint8_t *tag_of(uintptr_t at)
{
	return (uint8_t *)(TAGS_AT + (at >> REGION_SHIFT));
}

#define IN_LINE		__attribute__((always_inline)) static inline

/* By two registers, for a SAVES function has to keep each that it uses; and all that a callee may
 * use, where it calls one that is no such function. */
IN_LINE void entry_copy(struct entry *entry, uintptr_t region)
{
	for (size_t n = 0; n < REGION; n += 32)
		__asm__ volatile("movups %2, %%xmm0\n\tmovups %3, %%xmm1\n\t"
				 "movups %%xmm0, %0\n\tmovups %%xmm1, %1"
				 : "=m"(*(__int128 *)(entry->bytes + n)),
				   "=m"(*(__int128 *)(entry->bytes + n + 16))
				 : "m"(*(const __int128 *)(region + n)),
				   "m"(*(const __int128 *)(region + n + 16))
				 : "xmm0", "xmm1", "memory");
}

/* With its tag as it is, which was found old, and its bytes.  Nothing where somebody else was
 * first. */
IN_LINE int entry_fill(struct entry *entry, uintptr_t region, uint8_t epoch, uint64_t serial)
{
	if (__builtin_expect(*(volatile uint8_t *)tag_of(region) >= epoch, 0))
		return 0;
	*(volatile uint64_t *)&entry->serial = serial;
	return 1;
}

#endif
