/*
 * Reserves what layout.h says, as the program begins.  Everything is refused before a checkpoint
 * is open: where the program was not built with the pass, where its memory lies elsewhere, or where
 * the tags do not fit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/state.h"
#include "engine/checkpoint/ways/pages.h"
#include "engine/checkpoint/ways/ways.h"

#define TAGS_OF(at)	(TAGS_AT + ((at) >> REGION_SHIFT))

/* Each object that the pass has seen defines it; in a program without one it is null. */
extern const char mve_checkpoint_built __attribute__((weak));

/* What was built for regions of another size does not find this one. */
#define NAME_OF(bytes)	mve_checkpoint_region_ ## bytes
#define NAME(bytes)	NAME_OF(bytes)
extern const char NAME(REGION_BYTES);
const char NAME(REGION_BYTES) = 1;

static int reserve(uintptr_t at, uintptr_t end)
{
	long got = KERNEL_6(SYS_mmap, at, end - at, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			    MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got < 0)
		return (int)got;
	if (got != (long)at) {		/* a kernel before 4.17 */
		KERNEL_2(SYS_munmap, got, end - at);
		return -EEXIST;
	}
	state->reserved += end - at;
	KERNEL_3(SYS_madvise, got, end - at, MADV_DONTDUMP);
	KERNEL_3(SYS_madvise, got, end - at, MADV_NOHUGEPAGE);
	return 0;
}

union process_page checkpoint_process __attribute__((aligned(4096)));

static int reserve_all(void)
{
	int error = (int)KERNEL_3(SYS_madvise, &checkpoint_process, sizeof(checkpoint_process),
				  MADV_WIPEONFORK);

	if (!error)
		error = reserve(TAGS_OF(0), TAGS_OF(LOW_END));
	if (!error)
		error = reserve(TAGS_OF(HIGH_BEGIN), TAGS_OF(HIGH_END));
	if (!error)
		error = reserve(TAGS_OF(FRAMES_AT), TAGS_OF(FRAMES_END));
	if (!error)
		error = reserve(LOG_AT, LOG_AT + LOG_MAX);
	if (!error)
		error = reserve(STACKS_AT, STACKS_AT + STACKS_MAX);
	if (!error)
		error = reserve(PAGES_AT, KEPT_END);
	if (!error)
		error = reserve(HABITS_AT, HABITS_AT + HABITS_BYTES);
	return error;
}

static int known_place(const void *at)
{
	uintptr_t p = (uintptr_t)at;

	return p < LOW_END || (p >= HIGH_BEGIN && p < HIGH_END);
}

/* Where the kernel puts what is mapped, and where the program lies. */
static int places_known(void)
{
	long mapped = KERNEL_6(SYS_mmap, NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int known = mapped > 0 && known_place((void *)mapped);

	if (mapped > 0)
		KERNEL_2(SYS_munmap, mapped, 4096);
	return known && known_place(&mve_checkpoint_built) &&
	       known_place(__builtin_frame_address(0));
}

/* Checked bodies look at tags whether or not a checkpoint is open. */
int tags_begin(void)
{
	int error;

	if (!places_known())
		return fail(ERANGE, "the program's memory lies where it has no tags "
			    "(a stack without limit moves it: ulimit -s)");
	error = reserve_all();
	if (error)
		return fail(-error, "the tags do not fit into the address space "
			    "(ulimit -v, vm.overcommit_memory=2)");
	return 0;
}

static int setup_first(void)
{
	int error;

	if (!&mve_checkpoint_built)
		return fail(ENOEXEC, "this program was not built by mve-cc");
	if (state->plain)
		return fail(state->plain, state->plain_why);
	error = way_choose();
	state->ready = error == 0;
	return error;
}

int setup(void)
{
	return state->ready ? 0 : setup_first();
}

static void wipe(const uint32_t *page, size_t number)
{
	for (size_t n = 0; n < number; n++)
		if (page[n])
			memset((void *)(page[n] * 4096ul), 0, 4096);
}

/* A page that is wiped is not faulted in again. */
static int wiped_in_place(void)
{
	if (state->tag_pages_more)
		return 0;
	wipe(state->tag_page, TAG_PAGES_NEAR);
	wipe(state_tables->tag_page, TAG_PAGES);
	return 1;
}

static void given_back(void)
{
	long low = KERNEL_3(SYS_madvise, TAGS_OF(0), LOW_END >> REGION_SHIFT, MADV_DONTNEED);
	long high = KERNEL_3(SYS_madvise, TAGS_OF(HIGH_BEGIN),
			     (HIGH_END - HIGH_BEGIN) >> REGION_SHIFT, MADV_DONTNEED);
	long frames = KERNEL_3(SYS_madvise, TAGS_OF(FRAMES_AT),
			       (FRAMES_END - FRAMES_AT) >> REGION_SHIFT, MADV_DONTNEED);

	MUST(low == 0 && high == 0 && frames == 0);
	state->tag_pages_more = 0;
	memset(state->tag_page, 0, sizeof(state->tag_page));
	memset(state_tables->tag_page, 0, sizeof(state_tables->tag_page));
}

void tags_wipe(void)
{
	state->doubts = state->depth > 0;
	if (!wiped_in_place())
		given_back();
}

/* MUST's: an idea of ours is wrong, and nothing of the program can be trusted any more. */
void must_failed(const char *place)
{
	fprintf(stderr, "mve: checkpoint: %s\n", place);
	abort();
}
