/*
 * Files of a follower.  It has none open: descriptors are numbers that the
 * leader's stream tells.  Only a mapping needs a real file, so the paths of open
 * files are remembered and opened again for as long as the mmap takes; of files that
 * the program writes there are mirrors (mirror.c).  What it would share with the world
 * otherwise it gets a private copy of.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/fd/mirror.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"

#define SEEK_CUR_	1

static bool path_copy(char *to, uint64_t from)
{
	for (int i = 0; i < PATH_SIZE; i++) {
		if (target_in(&to[i], from + (uint64_t)i, 1))
			return false;
		if (!to[i])
			return true;
	}
	return false;
}

/* --- numbers that are used again ----------------------------------------------------- */

/*
 * A number that the leader was given was free: if it is not so here, another thread
 * has yet to close it, and before that there may be much that it does for the old
 * one.  What is closed in a way that is not seen here costs a wait or two.
 */
#define CLOSE_WAIT_NS	50000
#define CLOSE_WAITS	1000
#define GIVE_UP		8

static bool some_left;
static uint32_t never_closed;

static bool is_alone(const struct thread *t)
{
	uint32_t i = 0;

	return block_next(&i) == t && (i++, !block_next(&i));
}

static void number_take(const struct thread *t, const struct call_desc *d, long fd)
{
	int waits = 0;

	if (d->nr != __NR_dup2 && d->nr != __NR_dup3 && !is_alone(t))
		for (; fd_is(fd, FD_OPEN) && waits < CLOSE_WAITS && never_closed < GIVE_UP; waits++)
			change_wait(change_now(), CLOSE_WAIT_NS);
	never_closed += waits == CLOSE_WAITS;
	fd_set_mark(fd, FD_OPEN, true);
}

/*
 * A follower that came late was told of the first connections, and of their ends no
 * more: they never bring anything again, and what it does about them is nobody's
 * affair.
 */
void files_join(void)
{
	for (int64_t fd = fd_next(0); fd >= 0; fd = fd_next(fd + 1))
		if (fd_is(fd, FD_CLIENT)) {
			epoll_closed(fd);
			fd_set_mark(fd, FD_LEFT, true);
			some_left = true;
		}
}

static bool is_left(const struct call_desc *d, const uint64_t *args)
{
	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].kind == KIND_FD && fd_is((int32_t)args[i], FD_LEFT))
			return true;
	return false;
}

bool file_left(const struct call_desc *d, const uint64_t *args, long *result)
{
	if (!some_left || !d || d->class == CLASS_LOCAL || d->class == CLASS_LIFE ||
	    !is_left(d, args))
		return false;
	*result = 0;	/* it is done; there is nothing to read */
	if (call_has(d, TRAIT_CLOSES))
		files_closed((int32_t)args[0]);
	else if (d->class == CLASS_EFFECT && d->result == KIND_SIZE)
		*result = -ECONNRESET;
	return true;
}

static void path_note(struct file *f, int32_t dir, uint64_t path)
{
	f->dir = dir;
	f->known = path_copy(f->path, path);
}

/* A call has given the program a descriptor. */
void files_opened(struct thread *t, const struct call_desc *d, const uint64_t *args, long fd)
{
	uint64_t flags;
	struct file *f;
	bool at_dir;

	number_take(t, d, fd);
	if (call_has(d, TRAIT_COPIES)) {
		files_copied((long)(int32_t)args[0], fd);
		return;
	}
	if (!call_has(d, TRAIT_OPENS)) {
		file_forget(fd);
		return;
	}
	f = file_row_make(fd);
	if (!f)
		return;
	at_dir = d->args[0].kind == KIND_DIRFD;
	path_note(f, at_dir ? (int32_t)args[0] : AT_FDCWD, args[at_dir]);
	flags = files_flags(d, args);
	f->appends = flags & O_APPEND ? 1 : 0;
	f->mirror = 0;
	f->pos = 0;
	mirror_opened(f, flags & O_TRUNC);
}

/* Another file may come to have this path. */
static void path_gone(int32_t dir, uint64_t path)
{
	struct file f;

	path_note(&f, dir, path);
	mirror_unlinked(&f);
}

static void path_cut(uint64_t path, int64_t size)
{
	struct file f;

	path_note(&f, AT_FDCWD, path);
	mirror_cut(&f, size);
}

void files_moved(const struct call_desc *d, const uint64_t *args)
{
	if (!mirrors_made)
		return;
	if (d->nr == __NR_truncate)
		path_cut(args[0], (int64_t)args[1]);
	for (unsigned i = 0; call_has(d, TRAIT_RENAMES) && i < d->nargs; i++)
		if (d->args[i].kind == KIND_PATH)
			path_gone(i && d->args[i - 1].kind == KIND_DIRFD ? (int32_t)args[i - 1] :
									   AT_FDCWD, args[i]);
}

/* --- a leader that is to follow ------------------------------------------------------- */

#define LIST_SIZE	1024

/* The kernel's struct linux_dirent64. */
struct entry {
	uint64_t ino;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* A name of digits; -1: it is none. */
static long number_read(const char *name)
{
	long n = 0;

	for (; *name >= '0' && *name <= '9' && n < INT32_MAX; name++)
		n = n * 10 + *name - '0';
	return *name ? -1 : n;
}

static void file_learn(int folder, const char *name)
{
	long fd = number_read(name), n;
	struct file *f;

	if (fd < 0 || fd == folder)
		return;
	fd_set_mark(fd, FD_OPEN, true);
	f = file_row_make(fd);
	if (!f)
		return;
	n = OWN4(__NR_readlinkat, folder, name, f->path, PATH_SIZE);
	f->known = n > 0 && n < PATH_SIZE && f->path[0] == '/';
	if (!f->known)
		return;
	f->path[n] = 0;
	f->dir = AT_FDCWD;
	f->appends = OWN3(__NR_fcntl, fd, F_GETFL, 0) & O_APPEND ? 1 : 0;
	n = OWN3(__NR_lseek, fd, 0, SEEK_CUR_);
	f->pos = n < 0 ? 0 : n;
}

/* It was nobody's follower when it opened what it has open. */
void files_learn(struct thread *t)
{
	uint8_t list[LIST_SIZE] __attribute__((aligned(8)));
	int folder = (int)OWN4(__NR_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
	long n;

	(void)t;
	for (int64_t fd = fd_next(0); fd >= 0; fd = fd_next(fd + 1)) {
		if (file_known(fd))
			file_forget(fd);
		fd_set_mark(fd, FD_OPEN, false);
	}
	while (folder >= 0 && (n = OWN3(__NR_getdents64, folder, list, sizeof(list))) > 0)
		for (long at = 0; at < n; at += ((const struct entry *)(list + at))->size)
			file_learn(folder, ((const struct entry *)(list + at))->name);
	if (folder >= 0)
		OWN1(__NR_close, folder);
}

/* The successor has them. */
void files_drop(struct thread *t)
{
	(void)t;
	OWN3(__NR_close_range, 0, ~0u, 0);
}

/* --- names that libc draws ------------------------------------------------------------ */

/*
 * mkstemp makes six letters of a stack address and a clock, which another build's twin
 * cannot have in common.  What it tries is a file that nobody has, for its owner alone; the
 * name stands in the program's memory, and is as good as received: the leader's six letters
 * are put there.
 */
#define DRAWN		6
#define NAME_MOST	512
_Static_assert(NAME_MOST >= PATH_SIZE && DRAWN < NAME_MOST, "what is known by its path fits");

static bool draws(const struct walk *w, long nr, unsigned *path)
{
	const uint64_t *a = w->args;

	*path = nr == __NR_openat || nr == __NR_mkdirat;
	switch (nr) {
	case __NR_open:
	case __NR_openat:
		return (a[*path + 1] & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) &&
		       (a[*path + 2] & 0777) == 0600;
	case __NR_mkdir:
	case __NR_mkdirat:
		return (a[*path + 1] & 0777) == 0700;
	}
	return false;
}

static bool is_drawn(const char *six)
{
	for (int i = 0; i < DRAWN; i++)
		if (!((six[i] >= '0' && six[i] <= '9') || (six[i] >= 'A' && six[i] <= 'Z') ||
		      (six[i] >= 'a' && six[i] <= 'z')))
			return false;
	return true;
}

/* Where two names of one length differ in six letters only; or -1. */
static int drawn_at(const char *own, const char *leaders, int length)
{
	int first = 0, last = length - 1, at;

	while (first < length && own[first] == leaders[first])
		first++;
	while (last > first && own[last] == leaders[last])
		last--;
	if (first == length)
		return -1;
	for (at = last < DRAWN ? 0 : last - DRAWN + 1; at <= first && at + DRAWN <= length; at++)
		if (is_drawn(own + at) && is_drawn(leaders + at))
			return at;
	return -1;
}

bool files_drawn(struct thread *t, const struct walk *w, long nr)
{
	struct reader r = t->reader;	/* only looks */
	char own[NAME_MOST + 1] = "", leaders[NAME_MOST];
	uint32_t length;
	unsigned path;
	int at;

	r.ahead = true;
	if (!draws(w, nr, &path) || !follow_payload(&r, &length, sizeof(length)) ||
	    length > NAME_MOST || !follow_payload(&r, leaders, length) ||
	    target_in(own, w->args[path], length + 1) || own[length])
		return false;
	at = drawn_at(own, leaders, (int)length);
	return at >= 0 && !target_out(w->args[path] + (uint64_t)at, leaders + at, DRAWN);
}
