/*
 * From /proc/self/maps, by read(2) alone: what is looked at must not change meanwhile.
 *
 * Never among them: tags, log, stacks, and what is shared; stacks go with those who have them.
 * Nor what is mve's own, where that holds the program.
 * Of all memory also not the runtime's own pages.  Of libraries' not the program's data and
 * heap, whose stores are checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/seam/seam.h"
#include "engine/checkpoint/ways/ranges.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/runtime/state.h"

#define PAGE	4096ul
#define HOLES	6

static char text[256 << 10] __attribute__((aligned(PAGE)));

static struct range pages_of(const void *begin, const void *end)
{
	return (struct range){ (uintptr_t)begin & -PAGE, ((uintptr_t)end + PAGE - 1) & -PAGE };
}

static void holes_find(struct range holes[HOLES], int all)
{
	uintptr_t begin, top, end;

	heap_bounds(&begin, &top, &end);
	memset(holes, 0, HOLES * sizeof(*holes));
	if (all) {
		holes[0] = pages_of(&checkpoint_own, &checkpoint_own + 1);
		holes[3] = pages_of(&checkpoint_tables, &checkpoint_tables + 1);
		holes[2] = (struct range){ top, end };
		holes[1] = pages_of(checkpoint_stack, checkpoint_stack + sizeof(checkpoint_stack));
	} else {
		holes[0] = pages_of(&__data_start, &_end);
		holes[1] = (struct range){ begin, end };
	}
	for (int n = 0; n < 2; n++)
		holes[4 + n] = (struct range){ back->own[n].from,
					       back->own[n].to };
}

/* Adds what of a range is in none of the holes from this one on. */
static int add(struct ranges *to, struct range r, const struct range *holes, int more)
{
	struct range before = r, after = r;
	int error;

	if (r.begin >= r.end)
		return 0;
	if (more == 0) {
		if (to->number == RANGES_MAX)
			return -E2BIG;
		to->r[to->number++] = r;
		return 0;
	}
	if (holes->end <= r.begin || holes->begin >= r.end)
		return add(to, r, holes + 1, more - 1);
	before.end = holes->begin;
	after.begin = holes->end;
	error = add(to, before, holes + 1, more - 1);
	return error ? error : add(to, after, holes + 1, more - 1);
}

static int is_wanted(struct range r, const char *perms, const char *rest)
{
	return !strncmp(perms, "rw", 2) && perms[3] == 'p' && r.end > HIGH_BEGIN &&
	       !strstr(rest, "[stack") && !stack_within(r.begin, r.end);
}

/* One line: BEGIN-END PERMS ... */
static int line_read(struct ranges *to, char *line, const struct range *holes)
{
	struct range r;
	char *at;

	r.begin = strtoul(line, &at, 16);
	r.end = strtoul(at + 1, &at, 16);
	return is_wanted(r, at + 1, at + 5) ? add(to, r, holes, HOLES) : 0;
}

static int text_read(int maps)
{
	long had = 0, n;

	while ((n = KERNEL_4(SYS_pread64, maps, text + had, sizeof(text) - 1 - had, had)) > 0)
		had += n;
	text[had] = '\0';
	return n < 0 || had == sizeof(text) - 1 ? -E2BIG : 0;
}

int ranges_open(void)
{
	return (int)KERNEL_3(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
}

int ranges_read(struct ranges *to, int maps, int all)
{
	struct range holes[HOLES];
	int error = text_read(maps);
	char *line = text, *end;

	holes_find(holes, all);
	to->number = 0;
	for (; !error && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		error = line_read(to, line, holes);
	}
	KERNEL_3(SYS_madvise, text, sizeof(text), MADV_DONTNEED);
	return error;
}
