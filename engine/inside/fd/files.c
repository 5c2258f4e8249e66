/*
 * The files that descriptors were opened for, as far as they are known: a row a number, and
 * descriptors of our own by their paths.  follow_files.c learns them.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

#include "engine/inside/fd/files.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"

#define PAGE_FILES	256
#define PAGES		(FD_NUMBERS / PAGE_FILES)
_Static_assert(FD_NUMBERS % PAGE_FILES == 0, "each number has a page");

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

bool file_known(long fd)
{
	const struct file *f = file_row(fd);

	return f && f->known;
}

void files_each(void (*on)(long fd, struct file *row, void *what), void *what)
{
	for (long fd = 0; fd < FD_NUMBERS; fd++)
		if (pages[fd / PAGE_FILES])
			on(fd, file_row(fd), what);
		else
			fd += PAGE_FILES - 1;
}

static long file_open_as(const struct file *f, uint64_t flags)
{
	const struct file *dir = f->path[0] == '/' || f->dir == AT_FDCWD ? NULL : file_row(f->dir);
	long at = AT_FDCWD, fd;

	if (dir && dir->known)
		at = OWN4(__NR_openat, AT_FDCWD, dir->path, O_PATH | O_CLOEXEC, 0);
	fd = OWN4(__NR_openat, at, f->path, flags, 0);
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
	int i = 0;

	if (!a->known || !b->known || (a->dir != b->dir && a->path[0] != '/'))
		return false;
	while (a->path[i] && a->path[i] == b->path[i])
		i++;
	return i && a->path[i] == b->path[i];
}

bool files_same(long fd, long other)
{
	return file_known(fd) && file_known(other) && file_same_path(file_row(fd), file_row(other));
}
