/*
 * The writable memory of the process that is private to it: of libraries, or all but stacks and
 * what is the runtime's.
 */
#ifndef MVE_CHECKPOINT_RANGES_H
#define MVE_CHECKPOINT_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* Limit (Checkpoints): mappings of libraries, or of all, that are kept by pages.  Beyond:
 * opening a checkpoint is refused with -E2BIG. */
#define RANGES_MAX	512

struct range {
	uintptr_t begin, end;
};

struct ranges {
	int number;
	struct range r[RANGES_MAX];
};

/* /proc/self/maps: a descriptor, that can be read again and again; or a negative errno. */
int ranges_open(void);

/* Reads it.  A negative errno. */
int ranges_read(struct ranges *to, int maps, int all);

#endif
