/*
 * An image as files: the processes of a leader's twin, as they were when they slept, one each, in
 * a folder of a recording that begins there.  What is free is not in them, nor what files have;
 * memory that processes share is in one of them.
 *
 * Behind struct foam_head stand its rows, then runs of memory (struct foam_run and the bytes),
 * the last of which is empty.  Everything has a CRC32C, and a file gets its name when it is
 * whole, the first process' last: who reads an image checks all of it before any of it is
 * believed.
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
#define FOAM_VERSION	4
#define FOAM_NAME	"%06u.image"	/* its first process; */
#define FOAM_OTHER	"%06u.%u.image"	/* another one, from 1 on */
#define FOAM_AUXV	1024
/*
 * Limit (recordings): mappings of a process that is recorded when it runs already. Beyond:
 * mve record is refused.
 */
#define FOAM_MAPS	65536
#define FOAM_RUN	(256u << 10)	/* bytes of memory in a run, at most; all of one mapping */
/*
 * Limit (recordings): groups of a process that is recorded when it runs already. Beyond:
 * mve record is refused.
 */
#define FOAM_GROUPS	256
#define FOAM_LIMITS	16
#define FOAM_PATH	256

/* What a mapping is made of; bytes of runs come over it. */
enum foam_kind {
	FOAM_ZERO,		/* nothing */
	FOAM_STACK,		/* the same, and it grows downwards */
	FOAM_FILE,		/* a file, private */
	FOAM_FILE_SHARED,	/* a file, that nobody writes by it */
	FOAM_MEMORY,		/* memory that is like a file: `dev` and `inode` say which */
	FOAM_INSIDE,		/* the inside's code */
	FOAM_AREA, FOAM_BRIEF,	/* the session's */
	FOAM_STREAMS,		/* the first part of them: the others go with it */
	FOAM_VDSO,		/* the kernel's vDSO, and what it reads */
	FOAM_SHELF,		/* what is left of the shelf: its place */
	FOAM_KINDS
};

static inline bool foam_has_bytes(uint32_t kind)
{
	return kind <= FOAM_FILE || kind == FOAM_MEMORY || kind == FOAM_INSIDE;
}

struct foam_map {
	uint64_t start, end, offset;
	uint64_t dev, inode;
	uint32_t kind, prot;
	uint32_t crc;		/* of a file's part, as far as there is one */
	uint32_t shelved;	/* its code lay on the shelf: all pages come over it */
	char path[FOAM_PATH];
};

/* A lane of the leader's that ever had a life. */
struct foam_lane {
	uint64_t at;		/* how far it was told */
	uint32_t lane, life;
	uint32_t open;		/* its thread stood: it is read on from there */
	uint32_t execs;		/* programs begun in it */
	int32_t pid, tid;
};

/* A child that has ended, and nobody has waited for. */
struct foam_ended { int32_t pid, parent; };

/* What it may do, as the kernel has it. */
struct foam_rights {
	uint32_t uid[4], gid[4];	/* real, effective, saved, of the file system */
	uint64_t inheritable, permitted, effective, bounding, ambient;
	uint32_t no_new;
	uint32_t groups;
	uint32_t group[FOAM_GROUPS];
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
	uint32_t maps;		/* rows behind this, in this order; */
	uint32_t lanes, programs, ended;	/* in the first process' file */
	uint32_t rows;		/* CRC of those */
	uint32_t processes, process;	/* how many the image has; which of them this is, from 0 */
	uint64_t taken;		/* at random: the same in all of an image */
	int32_t pid;		/* of the process whose copy it is, of its parent, */
	int32_t parent, group;	/* and of the one whose group it is in; 0: that is none of these */
	uint32_t filters;
	uint32_t mask;		/* umask(2) */
	uint32_t pad0;
	uint64_t limit[FOAM_LIMITS][2];	/* rlimits: now, most */
	struct foam_rights rights;
	char exe[FOAM_PATH];	/* the program's file */
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

_Static_assert(sizeof(struct foam_map) == 312 && sizeof(struct foam_lane) == 32, "no holes");
_Static_assert(sizeof(struct foam_run) == 16, "no holes");

#endif
