/*
 * What a follower knows of the descriptors that its leader has open: follow_files.c keeps
 * the rows, mirror.c what belongs to files that a process writes by memory.
 */
#ifndef MVE_INSIDE_FILES_H
#define MVE_INSIDE_FILES_H

#include <linux/stat.h>

#include "engine/inside/stream.h"

#define PATH_SIZE	240
#define FILES		4096	/* descriptors that have rows */

struct file {
	uint8_t known;		/* it was opened by `path` */
	uint8_t appends;
	uint8_t placed;		/* `pos` is the leader's word for the next write */
	uint16_t mirror;	/* + 1; 0: none */
	int32_t dir;		/* what the path is relative to */
	int64_t pos;		/* where the next read or write is, as far as is known */
	char path[PATH_SIZE];
};

/* NULL: no row for such a number. */
struct file *file_row(long fd);
/* A descriptor of ours for the path, by which nothing can be read. */
long file_open_path(const struct file *f);
bool file_same_path(const struct file *a, const struct file *b);
/* Calls on each row that there is. */
void files_each(void (*on)(long fd, struct file *row, void *what), void *what);

/* mirror.c: a descriptor was opened by a path; `truncates`: the file is empty now. */
void mirror_opened(struct file *f, bool truncates);
/* The file of this path was cut or made longer. */
void mirror_cut(const struct file *f, int64_t size);
/* Another file may be made under its path. */
void mirror_unlinked(const struct file *f);
/* The mirror has not what the file has: a word for the user, once. */
void mirror_lost(struct thread *t, long fd);
extern uint64_t mirrors_made;

/* Which file it is: what events say, and mirrors are found by. */
static inline uint64_t file_device(const struct statx *st)
{
	return (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
}

static inline uint64_t file_number(const struct statx *st)
{
	return st->stx_ino ^ ((uint64_t)st->stx_btime.tv_sec << 32 ^ st->stx_btime.tv_nsec);
}

/* places.c: a leader's descriptors of a file that has mirrors. */
void places_begin(struct thread *t, int64_t fd, const struct statx *st);

#define MIRROR_LEADS	(-1)

/*
 * What stands behind a descriptor that is to be mapped, as the leader says: an enum
 * file_kind, with what mmap answered and where it is, or MIRROR_LEADS.  Of FILE_TOLD, our
 * descriptor.
 */
int mirror_asked(struct thread *t, int32_t fd, int64_t *result, uint64_t *at, int32_t *mirror);

#endif
