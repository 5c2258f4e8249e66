/*
 * How far a recording that still grows is whole: a page that three processes map.  Who writes the
 * folder says how far; who reads it, or ships it, says how far that is done, so that segments may
 * go and the disk is bounded.
 *
 * What is settled are whole frames, with all that is before them, when a recorder wrote them; when
 * they came over a network they may end anywhere.  The other's words are numbers, and no more:
 * what stands in the folder is checked as ever.
 */
#ifndef MVE_ABI_TAIL_H
#define MVE_ABI_TAIL_H

#include <stdint.h>

struct log_tail {
	uint64_t settled;	/* tail_place(): before it all is written */
	uint64_t taken;		/* segments before this one are not needed: the reader's */
	uint64_t acked;		/* bytes from the beginning on that are elsewhere: the shipper's */
	uint32_t over;		/* not 0: nothing is settled any more */
	uint32_t pad;
};

_Static_assert(sizeof(struct log_tail) == 32, "the same for all that map it");

/* A place in a recording: a byte of a segment. */
static inline uint64_t tail_place(uint32_t segment, uint32_t offset)
{
	return (uint64_t)segment << 32 | offset;
}

static inline uint32_t tail_segment(uint64_t place)
{
	return (uint32_t)(place >> 32);
}

static inline uint32_t tail_offset(uint64_t place)
{
	return (uint32_t)place;
}

#endif
