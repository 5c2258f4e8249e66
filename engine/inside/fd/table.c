/* The rows of descriptors.  Threads read and mark them at the same time, by atomics. */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/resource.h>
#include <stddef.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"

#define HIGHEST		64	/* numbers that a follower keeps for its own */
_Static_assert(HIGHEST < FD_NUMBERS / 2, "there is room for others");
_Static_assert(FD_NUMBERS % FD_PAGE_ROWS == 0, "each number has a page");
_Static_assert(FD_SET <= UINT16_MAX, "marks are one word");
_Static_assert(sizeof(struct fd_row) == 24, "each has what it is said to have, and no hole");

void *fd_pages[FD_NUMBERS / FD_PAGE_ROWS];

struct fd_row *fd_row_make(int64_t fd)
{
	struct fd_row *page;

	if (fd < 0 || fd >= FD_NUMBERS)
		return NULL;
	page = table_page(&fd_pages[fd / FD_PAGE_ROWS], FD_PAGE_ROWS * sizeof(*page));
	return page ? &page[fd % FD_PAGE_ROWS] : NULL;
}

void fd_set_mark(int64_t fd, unsigned marks, bool on)
{
	struct fd_row *r = on && marks ? fd_row_make(fd) : fd_row(fd);
	unsigned have = r ? __atomic_load_n(&r->marks, __ATOMIC_RELAXED) & marks : 0;

	if (!r || have == (on ? marks : 0))
		return;
	if (on)
		PUBLISH_BY(fd_marks, fetch_or, &r->marks, (uint16_t)marks);
	else
		PUBLISH_BY(fd_marks, fetch_and, &r->marks, (uint16_t)~marks);
}

/* All but who is open for this version alone: private_gone. */
#define MARKS_GONE	(uint16_t)~FD_PRIVATE
_Static_assert(!(MARKS_GONE & FD_PRIVATE), "libc's own are closed by libc");
#define MARKS_COPIED	(FD_INNER | FD_BELL | FD_LED | FD_INPUT | FD_LISTENS | FD_CLIENT | \
			 FD_LEFT | FD_SET)

void marks_gone(struct thread *t, struct numbers n)
{
	(void)t;
	FD_ROWS_EACH(fd, n) {
		fd_set_mark(fd, MARKS_GONE, false);
		if (fd_row(fd)->object)
			fd_row(fd)->object = 0;
	}
}

void marks_copied(int64_t from, int64_t to)
{
	const struct fd_row *r = fd_row(from);
	unsigned marks = r ? __atomic_load_n(&r->marks, __ATOMIC_RELAXED) & MARKS_COPIED : 0;

	if (marks)
		fd_set_mark(to, marks, true);
	if (r && r->object && fd_row_make(to))
		fd_row(to)->object = r->object;
}

int64_t fd_next(int64_t from)
{
	for (; from >= 0 && from < FD_NUMBERS; from = (from / FD_PAGE_ROWS + 1) * FD_PAGE_ROWS)
		if (fd_row(from))
			return from;
	return -1;
}

/* Where no number of the stream will be. */
long number_high(long fd)
{
	struct { uint64_t now, max; } limit = { 0, 0 };
	long high;

	OWN4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
	if (limit.now > FD_NUMBERS)
		limit.now = FD_NUMBERS;
	high = OWN3(__NR_fcntl, fd, F_DUPFD_CLOEXEC,
		    limit.now > 2 * HIGHEST ? limit.now - HIGHEST : limit.now / 2);
	OWN1(__NR_close, fd);
	return high;
}
