/*
 * Memory that is kept by pages.  The kernel protects them (userfaultfd, asynchronous: a write is
 * noted and goes on, the kernel's own writes too) and says which were written since
 * (PAGEMAP_SCAN); a copy of all holds what was there when the newest checkpoint was opened.
 *
 * Opening one within another, what was written since the outer one was opened is first put
 * aside: restoring the outer one takes the pages from there, the newest first.
 *
 * With tags the copy is made good only when a library is about to be called (library.h): what
 * libraries have in it is still what it was as the checkpoint was opened.  What the program itself
 * has written there is in the log: so going back undoes what was logged after that look, then
 * writes pages, then undoes what was logged before.
 *
 * A child has none of it, and begins anew; so does a twin of mve's, which is a copy that nobody
 * has told.  What is mapped later is found when the break has
 * moved, when libc's heap has given a block that lies elsewhere, and at each wipe of the tags.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/library.h"
#include "engine/checkpoint/runtime/maps.h"
#include "engine/checkpoint/seam/seam.h"
#include "engine/checkpoint/ways/pages.h"
#include "engine/checkpoint/ways/ranges.h"
#include "engine/checkpoint/ways/ways.h"

#define PAGE		4096ul

/* Of headers that are newer than Debian 12's. */
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED	(1 << 13)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC		(1 << 15)
#endif

struct scan_region {
	uint64_t begin, end, categories;
};

struct scan {
	uint64_t size, flags, begin, end, walked, vec, vec_size, most;
	uint64_t inverted, mask, any, returned;
};

#define SCAN_CALL	_IOWR('f', 16, struct scan)
#define SCAN_PROTECT	1		/* what is found is protected again */
#define IS_WPALLOWED	1
#define IS_WRITTEN	2
#define FOUND_MAX	256

/* Looks until all that was written is protected again. */
#define LOOKS_TRUSTED	64

/* Above what programs count their descriptors to. */
#define NUMBER_LEAST	900

struct aside {
	uintptr_t at;
	unsigned char bytes[PAGE];
};

static struct {
	int uffd, pagemap, maps;
	unsigned wipes;
	const void *brk;
	uintptr_t top;		/* of the program's heap, where all is kept */
	int stale;
	size_t aside;		/* pages that were put aside */
	unsigned looks;
	struct ranges now;
	size_t copy_at[RANGES_MAX];
	struct scan_region found[FOUND_MAX];
} *const pages = (void *)PAGES_AT;

#define ASIDE	((struct aside *)ASIDE_AT)

int number_high(int fd)
{
	int high = fd < 0 ? fd : (int)KERNEL_3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, NUMBER_LEAST);

	if (fd >= 0 && high >= 0)
		KERNEL_1(SYS_close, fd);
	return high >= 0 ? high : fd;
}

static int kernel_begin(void)
{
	struct uffdio_api api = { .api = UFFD_API,
		.features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED };

	pages->uffd = number_high((int)KERNEL_1(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
	if (pages->uffd < 0 || KERNEL_3(SYS_ioctl, pages->uffd, UFFDIO_API, &api))
		return -1;
	pages->pagemap = number_high((int)KERNEL_3(SYS_openat, AT_FDCWD, "/proc/self/pagemap",
						   O_RDONLY | O_CLOEXEC));
	pages->maps = number_high(ranges_open());
	back->kernel[0] = pages->uffd;
	back->kernel[1] = pages->pagemap;
	back->kernel[2] = pages->maps;
	return pages->pagemap < 0 ? pages->pagemap : pages->maps;
}

static void ended(void)
{
	KERNEL_1(SYS_close, pages->uffd);
	KERNEL_1(SYS_close, pages->pagemap);
	KERNEL_1(SYS_close, pages->maps);
	pages->uffd = pages->pagemap = pages->maps = -1;
}

static void begin_anew(void)
{
	pages->stale = 1;
	pages->looks = LOOKS_TRUSTED;
	pages->now.number = 0;
	pages->pagemap = pages->maps = -1;
	process->has_pages = 1;
	if (kernel_begin() < 0)
		ended();
}

static void in_child(void)
{
	ended();
	library_child();
	begin_anew();
}

/* A twin has been given none of the descriptors (and its process' number is its leader's); others
 * have closed them; a child that libc knows nothing of has its parent's. */
void pages_own(void)
{
	int there;

	if (way->begin != pages_begin || pages->uffd < 0)
		return;
	there = KERNEL_3(SYS_fcntl, pages->uffd, F_GETFD, 0) >= 0;
	if (there && process->has_pages)
		return;
	if (there)
		ended();
	begin_anew();
	for (int n = 0; n < state->depth; n++)
		if (state_tables->levels[n].looked)
			lost(ENOTSUP, "the memory of libraries was kept in its leader");
}

void pages_again(void)
{
	if (way->begin == pages_begin && pages->uffd < 0)
		begin_anew();
}

int pages_begin(void)
{
	if (kernel_begin() < 0)
		return fail(ENOSYS, "the kernel does not say which pages were written "
			    "(Linux 6.7 has PAGEMAP_SCAN)");
	pages->stale = 1;
	pages->looks = LOOKS_TRUSTED;
	process->has_pages = 1;
	pthread_atfork(NULL, NULL, in_child);
	return 0;
}

/* Where the copy of a byte is; null: it is in no range. */
static unsigned char *copy_of(uintptr_t at)
{
	int low = 0, high = pages->now.number;

	while (low < high) {
		int mid = (low + high) / 2;

		if (at < pages->now.r[mid].begin)
			high = mid;
		else if (at >= pages->now.r[mid].end)
			low = mid + 1;
		else
			return (unsigned char *)COPIES_AT + pages->copy_at[mid] +
			       (at - pages->now.r[mid].begin);
	}
	return NULL;
}

void pages_look(uintptr_t at)
{
	if (state->ready && way->begin == pages_begin && !copy_of(at))
		pages->stale = 1;
}

/* When a page was last found to be written. */
static uint8_t *found_in(const unsigned char *copy)
{
	return (uint8_t *)FOUND_AT + (copy - (unsigned char *)COPIES_AT) / PAGE;
}

static uint8_t found_now(void)
{
	return (uint8_t)(pages->looks / LOOKS_TRUSTED);
}

/* One that was found before is written at most looks, so it is not protected again: to copy it
 * costs less than a fault.  Others are. */
static int is_cold(uintptr_t at)
{
	const unsigned char *copy = copy_of(at);

	return copy && *found_in(copy) != found_now();
}

static int protect_cold(uintptr_t at, uintptr_t end)
{
	struct uffdio_writeprotect wp = { .range = { at, 0 }, .mode = UFFDIO_WRITEPROTECT_MODE_WP };

	while (at + wp.range.len < end && is_cold(at + wp.range.len))
		wp.range.len += PAGE;
	return wp.range.len ? (int)KERNEL_3(SYS_ioctl, pages->uffd, UFFDIO_WRITEPROTECT, &wp) : 0;
}

typedef void each_fn(uintptr_t at, unsigned char *copy);

/* A page is protected before it is copied. */
static int found_each(const struct scan_region *found, int protected, each_fn *each)
{
	int was_cold = 0, error = 0;

	for (uintptr_t p = found->begin; p < found->end && !error; p += PAGE) {
		unsigned char *copy = copy_of(p);
		int cold = !protected && is_cold(p);

		if (cold && !was_cold)
			error = protect_cold(p, found->end);
		was_cold = cold;
		if (!copy)
			continue;
		*found_in(copy) = found_now();
		each(p, copy);
	}
	return error;
}

/* Calls for each page that was written since the last look, or may have been.  Who is written no
 * more is found out now and then. */
static int written(each_fn *each)
{
	int all = ++pages->looks % LOOKS_TRUSTED == 0;
	struct scan scan = { .size = sizeof(scan), .flags = all ? SCAN_PROTECT : 0,
		.begin = HIGH_BEGIN, .end = HIGH_END - PAGE, .vec = (uintptr_t)pages->found,
		.vec_size = FOUND_MAX, .mask = IS_WPALLOWED | IS_WRITTEN, .returned = IS_WRITTEN };
	int n, error = 0;

	if (pages->now.number == 0)
		return 0;
	scan.begin = pages->now.r[0].begin;
	scan.end = pages->now.r[pages->now.number - 1].end;
	do {
		n = (int)KERNEL_3(SYS_ioctl, pages->pagemap, SCAN_CALL, &scan);
		for (int i = 0; i < n && !error; i++)
			error = found_each(&pages->found[i], all, each);
		scan.begin = scan.walked;
	} while (n > 0 && !error && scan.begin < scan.end);
	return n < 0 ? n : error;
}

static void copy_page(uintptr_t at, unsigned char *copy)
{
	state->counts.pages++;
	memcpy(copy, (void *)at, PAGE);
}

static void aside_page(uintptr_t at, unsigned char *copy)
{
	if (pages->aside == ASIDE_MAX) {
		lost(ENOSPC, "libraries wrote more than can be kept");
		return;
	}
	ASIDE[pages->aside].at = at;
	memcpy(ASIDE[pages->aside++].bytes, copy, PAGE);
	copy_page(at, copy);
}

/* A thread may have begun since the page was copied: its stack stays. */
static void page_write(uintptr_t at, const unsigned char *bytes)
{
	if (!stack_within(at, at + PAGE))
		memcpy((void *)at, bytes, PAGE);
}

static void back_page(uintptr_t at, unsigned char *copy)
{
	page_write(at, copy);
}

static int protect(struct range r)
{
	struct uffdio_register reg = { .range = { r.begin, r.end - r.begin },
		.mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect wp = { .range = reg.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP };

	long error = KERNEL_3(SYS_ioctl, pages->uffd, UFFDIO_REGISTER, &reg);

	return error ? (int)error :
		       (int)KERNEL_3(SYS_ioctl, pages->uffd, UFFDIO_WRITEPROTECT, &wp);
}

#define ENTRIES		512
#define ENTRY_IS_THERE	(3ull << 62)	/* present, or swapped, or never there and protected */

static int is_zero(const void *page)
{
	const uint64_t *word = page;

	return word[0] == 0 && !memcmp(word, word + 1, PAGE - sizeof(*word));
}

/* Of a copy only what differs is written: it was made before, or by a parent, whose pages they are
 * then.  And what is zero is zero there already: of a library's heap most was never there. */
static void copy_anew(const void *from, int is_there, unsigned char *copy, int was_there)
{
	is_there = is_there && !is_zero(from);
	if (is_there && !(was_there && !memcmp(copy, from, PAGE)))
		memcpy(copy, from, PAGE);
	else if (!is_there && was_there && !is_zero(copy))
		memset(copy, 0, PAGE);
}

static int entries_read(uintptr_t at, size_t number, uint64_t *entries)
{
	return KERNEL_4(SYS_pread64, pages->pagemap, entries, number * 8, at / PAGE * 8) ==
	       (long)number * 8;
}

static int copy_range(struct range r, unsigned char *copy)
{
	uint64_t is[ENTRIES], was[ENTRIES];
	size_t n, most;

	for (uintptr_t p = r.begin; p < r.end; p += n * PAGE, copy += n * PAGE) {
		most = (r.end - p) / PAGE < ENTRIES ? (r.end - p) / PAGE : ENTRIES;
		if (!entries_read(p, most, is) || !entries_read((uintptr_t)copy, most, was))
			return -EIO;
		for (n = 0; n < most; n++)
			copy_anew((void *)(p + n * PAGE), (is[n] & ENTRY_IS_THERE) != 0,
				  copy + n * PAGE, (was[n] & ENTRY_IS_THERE) != 0);
	}
	return 0;
}

static uintptr_t heap_top(void)
{
	uintptr_t begin, top, end;

	heap_bounds(&begin, &top, &end);
	return way->all ? top : end;
}

static int is_stale(void)
{
	return pages->stale || pages->brk != __curbrk || pages->top != heap_top() ||
	       pages->wipes != state->counts.wipes;
}

/* All ranges anew, with their copies.  Only the outermost checkpoint may. */
static int renew(void)
{
	size_t at = 0;
	int error = ranges_read(&pages->now, pages->maps, way->all);

	for (int n = 0; n < pages->now.number && !error; n++) {
		struct range r = pages->now.r[n];

		pages->copy_at[n] = at;
		at += r.end - r.begin;
		if (at > COPIES_MAX)
			return -E2BIG;
		error = protect(r);
		if (!error)
			error = copy_range(r, (unsigned char *)COPIES_AT + pages->copy_at[n]);
	}
	KERNEL_3(SYS_madvise, COPIES_AT + at, COPIES_MAX - at, MADV_DONTNEED);
	pages->brk = __curbrk;
	pages->top = heap_top();
	pages->wipes = state->counts.wipes;
	pages->stale = error != 0;
	return error;
}

int pages_open(struct level *level)
{
	int error;

	pages_own();
	if (pages->uffd < 0)
		return fail(ENOSYS, "a child cannot watch its pages");
	if (state->depth == 0)
		pages->aside = 0;
	if (state->depth == 0 && is_stale())
		error = renew();
	else
		error = written(state->depth ? aside_page : copy_page);
	level->aside = pages->aside;
	return error ? fail(-error, "the memory of libraries is not known") : 0;
}

/* First to the newest copy, then by what was put aside since the checkpoint was opened. */
void pages_restore(const struct level *level)
{
	MUST(level->aside <= pages->aside && pages->aside <= ASIDE_MAX);
	written(back_page);
	while (pages->aside > level->aside) {
		struct aside *a = &ASIDE[--pages->aside];
		unsigned char *copy = copy_of(a->at);

		page_write(a->at, a->bytes);
		if (copy)
			memcpy(copy, a->bytes, PAGE);
	}
}

int pages_catch_up(int depth)
{
	int kept = 0, error;

	pages_own();
	for (int n = 0; n < depth; n++)
		kept |= state_tables->levels[n].looked;
	if (!kept)
		pages->aside = 0;
	error = !kept && is_stale() ? renew() : written(kept ? aside_page : copy_page);
	state->turn++;
	for (int n = 0; n < depth && !error; n++) {
		struct level *level = &state_tables->levels[n];

		if (level->looked)
			continue;
		level->looked = 1;
		level->looked_mark = state->head;
		level->aside = pages->aside;
	}
	state->counts.looks++;
	return error;
}

int tags_open(struct level *level)
{
	int error = 0;

	if (pages->uffd < 0)
		return fail(ENOSYS, "a child cannot watch its pages");
	level->looked = 0;
	if (state->strange || library_stands(level->jump.rsp))
		error = pages_catch_up(state->depth + 1);
	state->watch = !level->looked;
	return error ? fail(-error, "the memory of libraries is not known") : 0;
}

/* What was logged before the look is in the copy as it was at the look. */
static void copy_undone(uintptr_t at, const void *bytes)
{
	unsigned char *copy = copy_of(at);

	if (copy)
		memcpy(copy, bytes, REGION);
}

void tags_restore(const struct level *level)
{
	void (*also)(uintptr_t at, const void *bytes) = NULL;

	if (level->looked) {
		log_undo(level->looked_mark, NULL);
		pages_restore(level);
		also = state->depth ? copy_undone : NULL;
	}
	log_undo(level->mark, also);
	for (int n = 0; n < state->depth; n++)
		if (state_tables->levels[n].looked_mark > level->mark)
			state_tables->levels[n].looked_mark = level->mark;
}
