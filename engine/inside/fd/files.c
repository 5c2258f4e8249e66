/*
 * Files that are known by their descriptors: by which path each was opened, and our own
 * descriptors of them, for as long as something takes that needs a real one.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"

_Static_assert(sizeof(struct file) == 256, "a row's path is near where it is short");
_Static_assert(PATH_NEAR < PATH_SIZE && PATH_SIZE % 4096 == 0, "a longer one has pages");

#define PAGE_FILES	256
#define PAGES		(FD_NUMBERS / PAGE_FILES)
_Static_assert(FD_NUMBERS % PAGE_FILES == 0 && !(PAGE_FILES & (PAGE_FILES - 1)),
	       "each number has a page");

static void *pages[PAGES];	/* of rows */

struct file *file_row_make(long fd)
{
	struct file *page;

	if (fd < 0 || fd >= FD_NUMBERS)
		return NULL;
	page = table_page(&pages[fd / PAGE_FILES], PAGE_FILES * sizeof(*page));
	return page ? &page[fd % PAGE_FILES] : NULL;
}

struct file *file_row(long fd)
{
	return fd >= 0 && fd < FD_NUMBERS && pages[fd / PAGE_FILES] ? file_row_make(fd) : NULL;
}

void file_forget(long fd)
{
	struct file *f = file_row(fd);

	if (!f)
		return;
	f->known = 0;
	f->mirror = 0;
	f->pos = 0;
}

void files_each(void (*on)(long fd, struct file *row, void *what), void *what)
{
	for (long fd = 0; fd < FD_NUMBERS; fd++)
		if (pages[fd / PAGE_FILES])
			on(fd, file_row(fd), what);
		else
			fd += PAGE_FILES - 1;
}

void file_accepted(long listening, long fd)
{
	fd_set_mark(listening, FD_LISTENS, true);
	fd_set_mark(fd, FD_CLIENT, true);
	fd_set_mark(fd, FD_LEFT, false);
}

bool file_listens(long fd)
{
	return fd_is(fd, FD_LISTENS);
}

bool file_is_client(long fd)
{
	return fd_is(fd, FD_CLIENT);
}

/* How the call opens a file: O_RDONLY and the like. */
uint64_t files_flags(const struct call_desc *d, const uint64_t *args)
{
	uint64_t flags = O_CREAT | O_WRONLY | O_TRUNC;	/* creat */

	for (unsigned i = 0; i < d->nargs; i++)
		if (d->args[i].what == XLAT_open_flags && d->args[i].kind == KIND_FLAGS)
			flags = args[i];
		else if (d->args[i].what == LAYOUT_open_how && d->args[i].kind == KIND_MEM)
			target_in(&flags, args[i], sizeof(flags));
	return flags;
}

bool file_known(long fd)
{
	const struct file *f = file_row(fd);

	return f && f->known;
}

void files_gone(struct thread *t, struct numbers n)
{
	(void)t;
	for (int64_t fd = n.first; fd <= n.last && fd < FD_NUMBERS; fd++)
		if (pages[fd / PAGE_FILES])
			file_forget(fd);
		else
			fd |= PAGE_FILES - 1;
}

bool file_far_make(struct file *f)
{
	long at = f->far ? 0 : own_map(PATH_SIZE);

	if (at > 0)
		f->far = (char *)at;
	return f->far;
}

void file_copy(struct file *to, const struct file *from)
{
	struct file as = { .far = NULL };

	MUST(to != from && (!from->is_far || from->far));
	/* Never that of two, even in a child that another thread forks just now. */
	bytes_copy(&as, from, sizeof(as));
	as.far = to->far;
	bytes_copy(to, &as, sizeof(as));
	if (!from->is_far)
		return;
	to->known = to->is_far = file_far_make(to);
	if (to->known)
		bytes_copy(to->far, from->far, PATH_SIZE);
}

void files_copied(int64_t from, int64_t to)
{
	const struct file *f = file_row(from);
	struct file *c = f ? file_row_make(to) : NULL;

	if (!f)
		file_forget(to);
	else if (c && f != c)
		file_copy(c, f);
}

static long file_open_as(const struct file *f, uint64_t flags)
{
	const char *path = file_path(f);
	const struct file *dir = path[0] == '/' || f->dir == AT_FDCWD ? NULL : file_row(f->dir);
	long at = AT_FDCWD, fd;

	if (dir && dir->known)
		at = OWN4(__NR_openat, AT_FDCWD, file_path(dir), O_PATH | O_CLOEXEC, 0);
	fd = OWN4(__NR_openat, at, path, flags, 0);
	if (at >= 0)
		OWN1(__NR_close, at);
	return fd;
}

long file_open(const struct file *f)
{
	return file_open_as(f, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

long file_open_path(const struct file *f)
{
	return file_open_as(f, O_PATH | O_CLOEXEC);
}

bool file_same_path(const struct file *a, const struct file *b)
{
	const char *one = file_path(a), *other = file_path(b);
	int i = 0;

	if (!a->known || !b->known || (a->dir != b->dir && one[0] != '/'))
		return false;
	while (one[i] && one[i] == other[i])
		i++;
	return i && one[i] == other[i];
}

bool files_same(long fd, long other)
{
	return file_known(fd) && file_known(other) && file_same_path(file_row(fd), file_row(other));
}

long files_chdir(long fd)
{
	struct file *f = file_row(fd);
	long dir = f && f->known ? file_open(f) : -EBADF, result = dir;

	if (dir < 0)
		return dir;
	result = OWN1(__NR_fchdir, dir);
	OWN1(__NR_close, dir);
	return result;
}

/*
 * A program is executed by a descriptor, or by a path from one: so there is one of that
 * number.  A script's interpreter opens it by its number, so it stays.
 */
void files_lend(long fd)
{
	struct file *f = file_row(fd);
	long own = f && f->known ? file_open(f) : -EBADF;

	if (own < 0)
		return;
	if (own == fd) {
		OWN3(__NR_fcntl, fd, F_SETFD, 0);
		return;
	}
	OWN3(__NR_dup3, own, fd, 0);
	OWN1(__NR_close, own);
}
