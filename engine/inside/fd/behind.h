/* What stands behind a descriptor. */
#ifndef MVE_INSIDE_BEHIND_H
#define MVE_INSIDE_BEHIND_H

#include "engine/inside/gate/thread.h"
#include <linux/stat.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/abi/event.h"

/* What followers are told of it: with its content, if that is at most so large. */
enum file_kind behind_kind(long fd, const struct statx *st, uint64_t prot, uint64_t limit);
bool behind_is_written(long fd, const struct statx *st);
/* It is newer than the program that runs. */
bool behind_is_made_here(const struct statx *st);
/* Another description of the file, or an error. */
long behind_reopened(const struct thread *t, long fd);

#define STRETCHES	32

/* Where a file has content, from `from` to `size`: what is between is zeros. */
struct stretches {
	const struct thread *thread;
	long fd;
	uint64_t from, size;	/* the first: behind the last one that was found */
	uint32_t n;
	bool known;
	struct file_extent x[STRETCHES];
};

/* The next ones, as many as there is room for; by no descriptor that another thread can meet. */
void behind_stretches(struct stretches *s);

#endif
