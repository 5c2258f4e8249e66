/*
 * What a follower knows of the descriptors that its leader has open: files.c keeps the rows,
 * follow_files.c what calls say of them, mirror.c what belongs to files that a process writes
 * by memory.
 */
#ifndef MVE_INSIDE_FILES_H
#define MVE_INSIDE_FILES_H

#include <linux/stat.h>

#include "engine/core/walk.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/gate/thread.h"

#define PATH_SIZE	4096	/* with its end: the kernel takes no longer one */
#define PATH_NEAR	224

struct file {
	uint8_t known;		/* it was opened by its path */
	uint8_t appends;
	uint8_t placed;		/* `pos` is the leader's word for the next write */
	uint8_t is_far;		/* the path stands in `far`: it is longer than `near` */
	uint16_t mirror;	/* + 1; 0: none */
	uint16_t same;		/* the same: what the leader has said of what is opened next */
	int32_t dir;		/* what the path is relative to */
	int64_t pos;		/* where the next read or write is, as far as is known */
	char *far;		/* PATH_SIZE bytes, once a path here was so long: stays */
	char near[PATH_NEAR];
};

static inline const char *file_path(const struct file *f)
{
	return f->is_far ? f->far : f->near;
}

/* Room for a long path; false: there is no memory. */
bool file_far_make(struct file *f);
void file_copy(struct file *to, const struct file *from);

/* NULL: nothing is known of such a number; to know something, NULL: there is no memory. */
struct file *file_row(long fd);
struct file *file_row_make(long fd);
/* The program has another under this number, or none. */
void file_forget(long fd);
/* A descriptor of ours for the path: to read, or one by which nothing can be read. */
long file_open(const struct file *f);
long file_open_path(const struct file *f);
bool file_same_path(const struct file *a, const struct file *b);
/* Calls on each row that there is. */
void files_each(void (*on)(long fd, struct file *row, void *what), void *what);

/* How a call opens a file: O_RDONLY and the like. */
uint64_t files_flags(const struct call_desc *d, const uint64_t *args);
void files_opened(const struct call_desc *d, const uint64_t *args, long fd);
/* It was opened by a path. */
bool file_known(long fd);
/* A connection has come. */
void file_accepted(long listening, long fd);
void files_join(void);
/* A leader is to give up what it has open, and to know what that was; it gives it up. */
void files_learn(struct thread *t);
void files_drop(struct thread *t);
/* A call on a connection of the start, after it: answered here. */
bool file_left(const struct call_desc *d, const uint64_t *args, long *result);
bool file_listens(long fd);
/* It is a connection that came by an accept. */
bool file_is_client(long fd);
/* To the folder that the leader has opened under this number. */
long files_chdir(long fd);
/* Both were opened by the same path. */
bool files_same(long fd, long other);
/* What kept.def says of them. */
void files_gone(struct thread *t, struct numbers n);
void files_copied(int64_t from, int64_t to);

/* A name that libc has drawn is the leader's now: the call is to be compared again. */
bool files_drawn(struct thread *t, const struct walk *w, long nr);
/* Our own descriptor of the file under this number, for an execve by it. */
void files_lend(long fd);
/* A call that gives a path to another file, or takes it away. */
void files_moved(const struct call_desc *d, const uint64_t *args);

#endif
