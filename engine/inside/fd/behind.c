/*
 * What stands behind a descriptor that a leader maps, and whether followers find the same there
 * by its path: they do if nobody has written it of late, or will, and it is there to stay.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/stat.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "engine/core/must.h"
#include "engine/inside/fd/behind.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"

/* Limit (files): bytes of a mapped file that is only read.  Beyond: followers open it. */
#define READ_MAX	(64ull << 10)
#define LATELY_S	10		/* or READ_MAX does not count */
#define SECTOR		512
#define SEEK_DATA_	3
#define SEEK_HOLE_	4

bool behind_is_written(long fd, const struct statx *st)
{
	return !st->stx_nlink || (OWN3(__NR_fcntl, fd, F_GETFL, 0) & O_ACCMODE) != O_RDONLY;
}

static bool is_fresh(const struct statx *st)
{
	struct __kernel_timespec now = { 0 };

	OWN2(__NR_clock_gettime, CLOCK_REALTIME_COARSE, &now);
	return st->stx_ctime.tv_sec + LATELY_S >= now.tv_sec;
}

/*
 * Since the loader opened its first file, which is where a program begins.  What was
 * installed a moment before is not the program's own: another version has its own.
 */
bool behind_is_made_here(const struct statx *st)
{
	static struct __kernel_timespec began;

	if (!began.tv_sec)
		OWN2(__NR_clock_gettime, CLOCK_REALTIME_COARSE, &began);
	return st->stx_ctime.tv_sec > began.tv_sec ||
	       (st->stx_ctime.tv_sec == began.tv_sec && st->stx_ctime.tv_nsec > began.tv_nsec);
}

/*
 * It may be written again, or be gone, before a follower has opened it; libraries and the
 * like are not, unless the program has made them.
 */
static bool is_steady(const struct statx *st, uint64_t prot, uint64_t limit)
{
	if (prot & PROT_EXEC)
		return !behind_is_made_here(st) || st->stx_size > limit;
	return st->stx_size > (is_fresh(st) ? limit : READ_MAX);
}

enum file_kind behind_kind(long fd, const struct statx *st, uint64_t prot, uint64_t limit)
{
	switch (st->stx_mode & S_IFMT) {
	case S_IFREG:
		if (!behind_is_written(fd, st))
			return is_steady(st, prot, limit) ? FILE_PATH : FILE_TOLD;
		return st->stx_blocks * SECTOR > limit ? FILE_LARGE : FILE_TOLD;
	case S_IFCHR:
		return st->stx_rdev_major == 1 && st->stx_rdev_minor == 5 ? FILE_ZERO : FILE_OTHER;
	case S_IFBLK:
		return FILE_PATH;
	default:
		return FILE_OTHER;
	}
}

/* "/proc/self/task/TID/fd/FD": of a process whose first thread has ended, too. */
static void path_make(char *path, int32_t tid, long fd)
{
	static const char *const before[] = { "/proc/self/task/", "/fd/" };
	const long number[] = { tid, fd };
	char digits[20];

	for (int i = 0; i < 2; i++) {
		long left = number[i];
		int n = 0;

		for (const char *c = before[i]; *c; c++)
			*path++ = *c;
		do
			digits[n++] = (char)('0' + left % 10);
		while ((left /= 10));
		while (n)
			*path++ = digits[--n];
	}
	*path = 0;
}

/* Another description of the file: where it stands is nobody's affair but ours. */
long behind_reopened(const struct thread *t, long fd)
{
	char path[64];

	MUST(fd >= 0 && t->tid > 0);
	path_make(path, t->tid, fd);
	return OWN4(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

static void stretches_find(void *what)
{
	struct stretches *s = what;
	long own = behind_reopened(s->thread, s->fd);

	s->known = own >= 0;
	while (own >= 0 && s->from < s->size && s->n < STRETCHES) {
		long from = OWN3(__NR_lseek, own, s->from, SEEK_DATA_), to;

		if (from < 0 || (uint64_t)from >= s->size) {
			s->from = s->size;
			break;
		}
		to = OWN3(__NR_lseek, own, from, SEEK_HOLE_);
		if (to <= from || (uint64_t)to > s->size)
			to = (long)s->size;
		s->x[s->n++] = (struct file_extent){ (uint64_t)from, (uint64_t)(to - from) };
		s->from = (uint64_t)to;
	}
	if (own >= 0)
		OWN1(__NR_close, own);
}

void behind_stretches(struct stretches *s)
{
	s->n = 0;
	s->known = false;
	if (locks_on)
		call_aside(stretches_find, s);
	else
		stretches_find(s);
	if (s->known)
		return;
	s->n = s->from < s->size;
	s->x[0] = (struct file_extent){ s->from, s->size - s->from };
	s->from = s->size;
}
