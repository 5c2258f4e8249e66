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
#include "engine/inside/fd/inner.h"
#include "engine/inside/fd/mirror.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"

#define SEEK_CUR_	1

static bool path_copy(char *to, uint64_t from, int size)
{
	for (int i = 0; i < size; i++) {
		if (target_in(&to[i], from + (uint64_t)i, 1))
			return false;
		if (!to[i])
			return true;
	}
	return false;
}

/* --- numbers that are left ---------------------------------------------------------- */

static bool some_left;

/*
 * A follower that came late was told of the first connections, and of their ends no
 * more: they never bring anything again, and what it does about them is nobody's
 * affair.
 */
void files_join(void)
{
	for (int64_t fd = fd_next(0); fd >= 0; fd = fd_next(fd + 1))
		if (fd_is(fd, FD_CLIENT)) {
			epoll_gone(NULL, (struct numbers){ fd, fd });
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
	if (call_has(d, TRAIT_REPLACES))
		*result = (int32_t)args[1];
	else if (d->class == CLASS_EFFECT && d->result == KIND_SIZE)
		*result = -ECONNRESET;
	return true;
}

static void path_note(struct file *f, int32_t dir, uint64_t path)
{
	f->dir = dir;
	f->is_far = 0;
	f->known = path_copy(f->near, path, PATH_NEAR);
	if (!f->known)
		f->known = f->is_far = file_far_make(f) && path_copy(f->far, path, PATH_SIZE);
}

/* What it was noted in is about to go. */
static void path_let(const struct file *f)
{
	if (f->far)
		OWN2(__NR_munmap, f->far, PATH_SIZE);
}

/* A call has given the program a descriptor. */
void files_opened(const struct call_desc *d, const uint64_t *args, long fd)
{
	uint64_t flags;
	struct file *f;
	bool at_dir;

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
	f->mirror = f->same;
	f->same = 0;
	f->pos = 0;
	mirror_opened(f, flags & O_TRUNC);
}

/* Another file may come to have this path. */
static void path_gone(int32_t dir, uint64_t path)
{
	struct file f = { .far = NULL };

	path_note(&f, dir, path);
	mirror_unlinked(&f);
	path_let(&f);
}

static void path_cut(uint64_t path, int64_t size)
{
	struct file f = { .far = NULL };

	path_note(&f, AT_FDCWD, path);
	mirror_cut(&f, size);
	path_let(&f);
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

/* Its path; false: it has none, or a longer one than the kernel would take back. */
static bool link_read(struct file *f, int folder, const char *name)
{
	long n = OWN4(__NR_readlinkat, folder, name, f->near, PATH_NEAR);
	char *to = f->near;

	f->is_far = n == PATH_NEAR && file_far_make(f);
	if (f->is_far) {
		to = f->far;
		n = OWN4(__NR_readlinkat, folder, name, to, PATH_SIZE);
	}
	if (n <= 0 || n >= (f->is_far ? PATH_SIZE : PATH_NEAR))
		n = 0;
	to[n] = 0;
	return to[0] == '/';
}

static void file_learn(int folder, const char *name)
{
	long fd = number_read(name), n;
	struct file *f;

	if (fd < 0 || fd == folder)
		return;
	f = file_row_make(fd);
	if (!f)
		return;
	f->known = link_read(f, folder, name);
	if (!f->known) {
		inner_learn(fd, f->near);
		return;
	}
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
	for (int64_t fd = fd_next(0); fd >= 0; fd = fd_next(fd + 1))
		if (file_known(fd))
			file_forget(fd);
	while (folder >= 0 && (n = OWN3(__NR_getdents64, folder, list, sizeof(list))) > 0)
		for (long at = 0; at < n; at += ((const struct entry *)(list + at))->size)
			file_learn(folder, ((const struct entry *)(list + at))->name);
	if (folder >= 0)
		OWN1(__NR_close, folder);
	inner_learnt();
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
#define NAME_PIECE	64
_Static_assert(2 * DRAWN - 1 <= NAME_PIECE, "what may be drawn is one piece");

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

/* `size` bytes of both names, from their byte `at` on, which is not before where r stands. */
static bool names_read(struct reader *r, uint64_t own, unsigned from, unsigned at, unsigned size,
		       char names[2][NAME_PIECE])
{
	MUST(from <= at && size <= NAME_PIECE);
	for (unsigned n; from < at; from += n) {
		n = at - from < NAME_PIECE ? at - from : NAME_PIECE;
		if (!follow_payload(r, names[1], n))
			return false;
	}
	return follow_payload(r, names[1], size) && !target_in(names[0], own + at, size);
}

/* The first and the last byte in which they differ; false: none, or they are not there. */
static bool names_differ(struct reader r, uint64_t own, unsigned length, unsigned *first,
			 unsigned *last)
{
	char names[2][NAME_PIECE];
	bool some = false;

	for (unsigned at = 0, n; at < length; at += n) {
		n = length - at < NAME_PIECE ? length - at : NAME_PIECE;
		if (!names_read(&r, own, at, at, n, names))
			return false;
		for (unsigned i = 0; i < n; i++) {
			if (names[0][i] == names[1][i])
				continue;
			*first = some ? *first : at + i;
			*last = at + i;
			some = true;
		}
	}
	return some;
}

/* Two names of one length differ in six letters only: the leader's are put there. */
static bool drawn_take(struct reader r, uint64_t own, unsigned length)
{
	unsigned first, last, from, end;
	char names[2][NAME_PIECE];

	if (!names_differ(r, own, length, &first, &last) || last - first >= DRAWN)
		return false;
	MUST(first <= last && last < length);
	from = last < DRAWN ? 0 : last - DRAWN + 1;
	end = first + DRAWN < length ? first + DRAWN : length;
	if (!names_read(&r, own, 0, from, end - from, names))
		return false;
	for (unsigned i = 0; i + DRAWN <= end - from; i++)
		if (is_drawn(names[0] + i) && is_drawn(names[1] + i))
			return !target_out(own + from + i, names[1] + i, DRAWN);
	return false;
}

bool files_drawn(struct thread *t, const struct walk *w, long nr)
{
	struct reader r = t->reader;	/* only looks */
	uint32_t length;
	unsigned path;
	char end;

	r.ahead = true;
	return draws(w, nr, &path) && follow_payload(&r, &length, sizeof(length)) &&
	       length < PATH_SIZE && !target_in(&end, w->args[path] + length, 1) && !end &&
	       drawn_take(r, w->args[path], length);
}
