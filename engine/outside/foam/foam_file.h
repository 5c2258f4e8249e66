/*
 * An image as a file: a process of a leader's twin, as it was when that slept, in a folder of a
 * recording that begins there.  What is free is not in it, nor what its files have.
 *
 * Behind struct foam_head stand its rows, then runs of memory (struct foam_run and the bytes),
 * the last of which is empty.  Everything has a CRC32C, and the file gets its name when it is
 * whole: who reads it checks all of it before any of it is believed.
 *
 * Memory has the inside's, too, with the layouts of the build that made it: no other goes on
 * from there.  Raise FOAM_VERSION when a layout here changes.
 */
#ifndef MVE_OUTSIDE_FOAM_FILE_H
#define MVE_OUTSIDE_FOAM_FILE_H

#include <linux/prctl.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/abi/area.h"
#include "engine/abi/request.h"

#define FOAM_MAGIC	0x006d616f6665766dull	/* "mvefoam" */
#define FOAM_VERSION	1
#define FOAM_NAME	"%06u.image"
#define FOAM_AUXV	1024
/*
 * Limit (recordings): mappings of a process that is recorded when it runs already. Beyond:
 * mve record is refused.
 */
#define FOAM_MAPS	65536
#define FOAM_RUN	(256u << 10)	/* bytes of memory in a run, at most */

/* What a mapping is made of; bytes of runs come over it. */
enum foam_kind {
	FOAM_ZERO,		/* nothing */
	FOAM_STACK,		/* the same, and it grows downwards */
	FOAM_FILE,		/* a file, private */
	FOAM_FILE_SHARED,	/* a file, that nobody writes by it */
	FOAM_MEMORY,		/* memory that is like a file: `inode` says which */
	FOAM_INSIDE,		/* the inside's code */
	FOAM_AREA, FOAM_BRIEF,	/* the session's */
	FOAM_STREAMS,		/* the first part of them: the others go with it */
	FOAM_VDSO,		/* the kernel's vDSO, and what it reads */
	FOAM_KINDS
};

static inline bool foam_has_bytes(uint32_t kind)
{
	return kind <= FOAM_FILE || kind == FOAM_MEMORY || kind == FOAM_INSIDE;
}

struct foam_map {
	uint64_t start, end, offset;
	uint64_t inode;
	uint32_t kind, prot;
	uint32_t crc;		/* of a file's part, as far as there is one */
	uint32_t pad;
	char path[256];
};

/* A lane of the leader's that ever had a life. */
struct foam_lane {
	uint64_t at;		/* how far it was told */
	uint32_t lane, life;
	uint32_t open;		/* its thread stood: it is read on from there */
	uint32_t execs;		/* programs begun in it */
	int32_t pid, tid;
};

struct foam_head {
	uint64_t magic;
	uint32_t version, event_version, ring_version, area_version, brief_version;
	uint32_t inside;	/* the build's: CRC of its inside */
	uint64_t recording[2];	/* that it is of */
	uint64_t size;		/* of the file */
	uint64_t point_at;	/* in the process */
	struct foam_point point;
	struct prctl_mm_map mm;	/* its code, data, stack and arguments; the heap is the point's */
	uint8_t auxv[FOAM_AUXV];
	uint32_t auxv_len;
	uint32_t maps, lanes, programs;	/* rows behind this, in this order */
	uint32_t rows;		/* CRC of those */
	int32_t pid;		/* of the process whose copy it is, its parent and group */
	int32_t parent, group;
	uint32_t filters;
	uint8_t unsealed[AREA_IMAGES];
	uint64_t bytes;		/* of memory in runs */
	uint32_t pad;
	uint32_t crc;		/* of all that is before */
};

struct foam_run {
	uint64_t at;
	uint32_t len;		/* 0: there are no more */
	uint32_t crc;		/* of the two, and of the bytes */
};

_Static_assert(sizeof(struct foam_map) == 304 && sizeof(struct foam_lane) == 32, "no holes");
_Static_assert(sizeof(struct foam_run) == 16, "no holes");

#endif
