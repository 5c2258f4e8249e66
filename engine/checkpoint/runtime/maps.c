/*
 * While a checkpoint is open what is mapped is noted, to be unmapped if it is restored, and what
 * is unmapped stays, to be unmapped once the outermost one is dropped (but what was in it, where
 * no checkpoint has seen it).  What cannot be undone (a mapping laid over another, mremap, a
 * smaller break, other rights or what is thrown away of a mapping that was there before, another
 * thread's) is done, and the checkpoints are lost.
 *
 * Written by the thread that has opened them.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/maps.h"
#include "engine/checkpoint/runtime/state.h"

/* As if a checkpoint were open, for this thread may be the one that finds it lost. */
static int is_open(void)
{
	return state->depth && !state->lost;
}

void maps_lose(const char *why)
{
	if (is_open())
		lost(ENOTSUP, why);
}

/* Whether a change is put down; not another thread's, for whoever reads them need not wait. */
static int noted(void)
{
	if ((uintptr_t)__builtin_frame_address(0) - state->stack_low >= state->stack_room)
		maps_lose("another thread changed the mappings");
	return is_open();
}

static void note(enum change_kind kind, void *at, size_t size)
{
	size_t n = state->changed;

	if (n >= CHANGES_MAX)
		maps_lose("it mapped and unmapped too often");
	else
		state_tables->changes[state->changed++] = (struct change){ at, size, kind };
}

static void changes(const void *at, size_t size, const char *why)
{
	if (noted() && !maps_new((uintptr_t)at, size))
		maps_lose(why);
}

/* Those who share it go on, whatever we do; so it stays as it is. */
static void share(uintptr_t begin, uintptr_t end)
{
	size_t n = 0, had = state->shared;
	uintptr_t nobody = 0;

	while (n < SHARED_MAX &&
	       !__atomic_compare_exchange_n(&state->share[n].begin, &nobody, begin, 0,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		nobody = 0;
		n++;
	}
	if (n < SHARED_MAX)
		state->share[n].end = end;
	while (had <= n && !__atomic_compare_exchange_n(&state->shared, &had, n + 1, 0,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static int unmapped(void *at, size_t size)
{
	uintptr_t begin = (uintptr_t)at;

	for (size_t n = 0; n < state->shared && n < SHARED_MAX; n++)
		if (state->share[n].begin >= begin && state->share[n].end <= begin + size) {
			state->share[n].end = 0;
			__atomic_store_n(&state->share[n].begin, 0, __ATOMIC_RELAXED);
		}
	return munmap(at, size);
}

SAVES int maps_shared(uintptr_t at)
{
	for (size_t n = 0; n < state->shared && n < SHARED_MAX; n++)
		if (at >= state->share[n].begin && at < state->share[n].end)
			return 1;
	return 0;
}

SAVES __attribute__((noinline)) static void atomic_lost(void)
{
	lost(ENOTSUP, "it had locked or counted in memory that processes share");
}

/* Others may wait for what this one was about to give back. */
SAVES void mve_checkpoint_atomic(const void *at)
{
	if (state->shared && state->epoch && maps_shared((uintptr_t)at))
		atomic_lost();
}

void *mve_map_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *got;

	if (flags & MAP_FIXED) {
		maps_lose("something was mapped at a fixed place");
		ahead_forget(at, size);
	}
	got = mmap(at, size, prot, flags, fd, offset);
	if (got != MAP_FAILED && prot & PROT_WRITE && (flags & MAP_TYPE) != MAP_PRIVATE)
		share((uintptr_t)got, (uintptr_t)got + size);
	if (got != MAP_FAILED && noted())
		note((flags & MAP_TYPE) == MAP_PRIVATE ? CHANGE_MAPPED : CHANGE_SHARED, got, size);
	return got;
}

SAVES int maps_new(uintptr_t at, size_t size)
{
	for (size_t n = state->changed; n-- > state->changed_old;) {
		const struct change *c = &state_tables->changes[n];

		if (c->kind == CHANGE_MAPPED && at >= (uintptr_t)c->at && size <= c->size &&
		    at - (uintptr_t)c->at <= c->size - size)
			return 1;
	}
	return 0;
}

int mve_map_munmap(void *at, size_t size)
{
	ahead_forget(at, size);
	if (!noted())
		return unmapped(at, size);
	if ((uintptr_t)at % 4096 || !size) {
		errno = EINVAL;
		return -1;
	}
	if (maps_new((uintptr_t)at, size))
		KERNEL_3(SYS_madvise, at, size, MADV_DONTNEED);
	note(CHANGE_UNMAPPED, at, size);
	return is_open() ? 0 : unmapped(at, size);
}

void *mve_map_mremap(void *at, size_t old, size_t size, int flags, ...)
{
	va_list more;
	void *place;

	va_start(more, flags);
	place = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
	va_end(more);
	maps_lose("a mapping was moved");
	ahead_forget(at, old);
	return mremap(at, old, size, flags, place);
}

int mve_map_mprotect(void *at, size_t size, int prot)
{
	changes(at, size, "the rights of memory were changed");
	if (!(prot & PROT_READ))
		ahead_forget(at, size);
	return mprotect(at, size, prot);
}

int mve_map_madvise(void *at, size_t size, int advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
	case MADV_REMOVE:
		changes(at, size, "memory was thrown away");
	}
	return madvise(at, size, advice);
}

void *mve_map_sbrk(intptr_t more)
{
	void *old = sbrk(0);

	if (more < 0)
		maps_lose("the break was made smaller");
	else if (more && noted())
		note(CHANGE_BREAK, old, 0);
	return sbrk(more);
}

int mve_map_brk(void *end)
{
	return mve_map_sbrk((char *)end - (char *)sbrk(0)) == (void *)-1 ? -1 : 0;
}

/* Where libc's heap has grown libc knows the break of before again: what lies beyond must be gone,
 * for it takes what it grows by to be zero, and a mapping each time would be too many. */
void maps_undo(size_t mark)
{
	MUST(mark <= state->changed && state->changed <= CHANGES_MAX);
	while (state->changed > mark) {
		struct change *c = &state_tables->changes[--state->changed];

		if (c->kind == CHANGE_MAPPED || c->kind == CHANGE_SHARED)
			unmapped(c->at, c->size);
		else if (c->kind == CHANGE_BREAK && c->at < __curbrk)
			brk(c->at);
	}
	KERNEL_1(SYS_brk, __curbrk);
}

void maps_commit(void)
{
	size_t all = state->changed < CHANGES_MAX ? state->changed : CHANGES_MAX;

	MUST(state->depth == 0);
	for (size_t n = 0; n < all; n++)
		if (state_tables->changes[n].kind == CHANGE_UNMAPPED)
			unmapped(state_tables->changes[n].at, state_tables->changes[n].size);
	state->changed = 0;
}
