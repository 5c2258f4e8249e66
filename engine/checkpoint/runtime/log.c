/*
 * The log: regions as they were.  The check before a store has found that the region's tag is
 * of an older epoch; here it is copied, and its tag made the epoch's.
 *
 * Several threads, and a signal's handler in the middle of all this, may save the same region
 * at once, and nobody waits for another.  That is right because of the order in each:
 *
 *	take an entry, copy the region, look at the tag again, make the entry valid,
 *	write the tag; then store
 *
 * Who stores has written the tag before.  So if the tag is still old after the copy was made,
 * nobody had stored, and the copy is the region as it was; if not, the entry is left invalid,
 * and another is valid.  Two valid entries hold the same bytes.  (x86 keeps loads in order,
 * and stores; the compiler is told to.)
 *
 * An entry is valid whose serial is that of the log's contents.  Written by all threads, read
 * when the others stand.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/maps.h"
#include "engine/checkpoint/runtime/save.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/seam/seam.h"
#include "engine/checkpoint/ways/undo.h"
#include "engine/checkpoint/ways/ways.h"

#define PAGE		4096ul

/* Entries that a thread has taken at once: threads meet seldom then, and nobody waits for what
 * each wrote before. */
#define ENTRIES_TAKEN	8

extern char __libc_single_threaded;

static __thread struct {
	size_t batch;	/* the next one, and above it, shifted, where they end: one word */
	uint64_t turn;	/* of the log: those of before are none of ours any more */
} ours;

#define BATCH_END	32

_Static_assert(LOG_ENTRIES < 1ul << 31, "a batch is one word");

/* Without the lock prefix it is still one instruction: a handler comes before or after it. */
IN_LINE size_t next_of(size_t *count)
{
	size_t n = 1;

	__asm__ volatile("xadd %0, %1" : "+r"(n), "+m"(*count) : : "cc");
	return n;
}

/* The word is written before its turn: a handler that comes in between takes some for itself, and
 * what is left of those, or of these, nobody has. */
SAVES __attribute__((noinline)) static size_t take_more(void)
{
	uint64_t turn = state->turn;
	size_t n = __atomic_fetch_add(&state->head, ENTRIES_TAKEN, __ATOMIC_RELAXED);

	if (n >= LOG_ENTRIES)
		return n;
	*(volatile size_t *)&ours.batch = (n + ENTRIES_TAKEN) << BATCH_END | (n + 1);
	*(volatile uint64_t *)&ours.turn = turn;
	return n;
}

IN_LINE size_t take(void)
{
	size_t batch, n;

	if (__libc_single_threaded)
		return next_of(&state->head);
	if (*(volatile uint64_t *)&ours.turn != state->turn)
		return take_more();
	batch = next_of(&ours.batch);
	n = (uint32_t)batch;
	return n < batch >> BATCH_END ? n : take_more();
}

IN_LINE int tag_put(uint32_t *place, uint32_t page)
{
	uint32_t was = *(volatile uint32_t *)place;

	if (was == 0 && __atomic_compare_exchange_n(place, &was, page, 0, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
		return 1;
	return was == page;
}

/* Who wipes the tags finds the page, in one of three places: most in a small table, so that a
 * process has no page of the large one. */
IN_LINE void tag_noted(uintptr_t tag)
{
	uint32_t page = (uint32_t)(tag / PAGE), *far = state_tables->tag_page;

	if (!tag_put(&state->tag_page[page % TAG_PAGES_NEAR], page) &&
	    !tag_put(&far[page % TAG_PAGES], page) &&
	    !tag_put(&far[(page * 0x9E3779B97F4A7C15ul >> 48) % TAG_PAGES], page))
		state->tag_pages_more = 1;
}

SAVES __attribute__((noinline)) static void log_full(void)
{
	lost(ENOSPC, "more was written than the log can hold");
}

SAVES __attribute__((noinline)) static void undo_save(uintptr_t region)
{
	if (undo_room(REGION))
		__builtin_memcpy_inline(undo_put(region, REGION), (void *)region, REGION);
}

/* Memory that was not there, or in no use, as the newest checkpoint was opened. */
IN_LINE int is_new(uintptr_t at)
{
	return at - state->heap_new < state->heap_room || (state->changed && maps_new(at, 1));
}

/* No program has anything there: it is the program's fault, in each sense. */
#define NOWHERE	(~0ul)

IN_LINE void touch(uintptr_t at)
{
	(void)*(volatile const char *)at;
}

static const struct {
	const void *begin;
	size_t size;
} own[] = {
	{ &checkpoint_own, sizeof(checkpoint_own) },
	{ &checkpoint_tables, sizeof(checkpoint_tables) },
	{ &checkpoint_seam_tables, sizeof(checkpoint_seam_tables) },
	{ checkpoint_stack, sizeof(checkpoint_stack) },
};

SAVES uintptr_t own_next(uintptr_t at)
{
	uintptr_t next = (uintptr_t)&_end;

	for (size_t n = 0; n < sizeof(own) / sizeof(own[0]); n++) {
		uintptr_t begin = (uintptr_t)own[n].begin;

		if (begin + own[n].size > at && begin < next)
			next = begin > at ? begin : at;
	}
	return next;
}

/* What goes back must not be what takes it back.  So who runs over an array's end and comes here
 * faults, as in the tags; but a handler may stand on a stack of ours, and needs nothing saved. */
SAVES __attribute__((noinline)) static int own_spared(uintptr_t at)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	for (size_t n = 0; n < sizeof(own) / sizeof(own[0]); n++) {
		uintptr_t begin = (uintptr_t)own[n].begin;

		if (at - begin >= own[n].size)
			continue;
		if (here - begin >= own[n].size)
			touch(NOWHERE);
		return 1;
	}
	return 0;
}

IN_LINE void save(uintptr_t at, uintptr_t in_long)
{
	uintptr_t region = at & -REGION;
	uint8_t *tag = tag_of(at), epoch = state->epoch, was = *(volatile uint8_t *)tag;
	size_t n;

	if (was >= epoch || (state->shared && maps_shared(at)))
		return;
	if (is_data(at) && own_spared(at))
		return;
	if (state->undo) {
		undo_save(region);
		return;
	}
	if (at - state->stack_low >= state->stack_room && at - own_stack.low >= own_stack.room &&
	    !(frames_have(at) && frames_dead(at)) && !is_new(at)) {
		n = take();
		if (n >= LOG_ENTRIES) {
			log_full();
			return;
		}
		LOG[n].serial = 0;
		LOG[n].at = region | in_long;
		if (!in_long && was == epoch - 1)
			LOG[n].at |= ahead_hot(region);
		entry_copy(LOG + n, region);
		if (!entry_fill(LOG + n, region, epoch, state->serial))
			return;
	}
	tag_noted((uintptr_t)tag);
	*(volatile uint8_t *)tag = epoch;
}

SAVES void mve_checkpoint_save(const void *at)
{
	save((uintptr_t)at, 0);
}

SAVES __attribute__((noinline)) static void mve_checkpoint_save_in_long(uintptr_t at)
{
	save(at, IN_LONG);
}

IN_LINE void save_one_of(uintptr_t at, size_t size)
{
	if (size >= LONG)
		mve_checkpoint_save_in_long(at);
	else
		mve_checkpoint_save((const void *)at);
}

/* A length that is none (below 0, as it was meant) faults here, as it does where it is written to:
 * nothing was saved yet, and nothing written. */
IN_LINE uintptr_t range_end(uintptr_t at, size_t size)
{
	uintptr_t end = at + size;

	if (size >= LONG)
		touch(end < at ? NOWHERE : end - 1);
	return end;
}

SAVES __attribute__((noinline)) static void mve_checkpoint_save_regions(const void *at, size_t size)
{
	uintptr_t region = (uintptr_t)at & -REGION, end = range_end((uintptr_t)at, size);

	for (; region < end; region += REGION)
		if (*(volatile uint8_t *)tag_of(region) < state->epoch)
			save_one_of(region, size);
}

/* Where none is open no register has to be kept. */
SAVES void mve_checkpoint_save_range(const void *at, size_t size)
{
	if (size && state->epoch)
		mve_checkpoint_save_regions(at, size);
}

SAVES void mve_checkpoint_save_most(const void *at, size_t size)
{
	if (state->epoch)
		mve_checkpoint_save_range(at, size < LONG ? size : known_most((uintptr_t)at, size));
}

typedef uint64_t words __attribute__((vector_size(64), aligned(1)));

IN_LINE int is_zero(uintptr_t at, uintptr_t end)
{
	for (; end - at >= sizeof(words); at += sizeof(words))
		if (__builtin_reduce_or(*(const words *)at))
			return 0;
	for (; at < end; at++)
		if (*(const char *)at)
			return 0;
	return 1;
}

/* What is not saved keeps its tag: a later store to it has a check of its own. */
SAVES __attribute__((used)) static void mve_checkpoint_save_zeros(uintptr_t at, size_t size)
{
	uintptr_t end = range_end(at, size), next;

	for (; state->epoch && at < end; at = next) {
		next = (at & -REGION) + REGION;
		if (*(volatile uint8_t *)tag_of(at) < state->epoch &&
		    !is_zero(at, next < end ? next : end))
			save_one_of(at, size);
	}
}

/* A check that failed calls what is compiled, with room for what that keeps no register of. */
#define KEEPING(arguments, function)						\
	"push %%rbp\n\t"							\
	".cfi_def_cfa_offset 16\n\t"						\
	".cfi_offset %%rbp, -16\n\t"						\
	"mov %%rsp, %%rbp\n\t"							\
	".cfi_def_cfa_register %%rbp\n\t"					\
	"and $-16, %%rsp\n\t"							\
	"push %%rdi\n\t"							\
	"push %%rsi\n\t"							\
	"push %%r11\n\t"							\
	"sub $8, %%rsp\n\t"							\
	arguments "call " #function "\n\t"					\
	"add $8, %%rsp\n\t"							\
	"pop %%r11\n\t"								\
	"pop %%rsi\n\t"								\
	"pop %%rdi\n\t"								\
	"leave\n\t"								\
	".cfi_def_cfa %%rsp, 8\n\t"						\
	"ret"

__attribute__((naked, used)) static void mve_checkpoint_saves(void)
{
	__asm__(KEEPING("mov %%r11, %%rdi\n\t", mve_checkpoint_save) : : : "memory");
}

/* Of several that are looked at together mostly one was not saved yet, and all come here. */
__attribute__((naked)) void mve_checkpoint_save_at(void)
{
	__asm__("push %%rcx\n\t"
		".cfi_adjust_cfa_offset 8\n\t"
		"mov %%r11, %%rcx\n\t"
		"shr %0, %%rcx\n\t"
		"mov %c1(%%rcx), %%cl\n\t"
		"cmp mve_checkpoint_epoch(%%rip), %%cl\n\t"
		"pop %%rcx\n\t"
		".cfi_adjust_cfa_offset -8\n\t"
		"jb mve_checkpoint_saves\n\t"
		"ret" : : "i"(REGION_SHIFT), "i"(TAGS_AT) : "memory");
}

__attribute__((naked, used)) static void mve_checkpoint_saves_range(void)
{
	__asm__(KEEPING("mov %%r11, %%rdi\n\tmov %%r10, %%rsi\n\t", mve_checkpoint_save_range)
		: : : "memory");
}

/* Mostly a range comes here because it is long, and all of it is saved already. */
__attribute__((naked)) void mve_checkpoint_save_range_at(void)
{
	__asm__("push %%rax\n\t"
		".cfi_adjust_cfa_offset 8\n\t"
		"push %%rcx\n\t"
		".cfi_adjust_cfa_offset 8\n\t"
		"push %%rdx\n\t"
		".cfi_adjust_cfa_offset 8\n\t"
		"test %%r10, %%r10\n\t"
		"jz 2f\n\t"
		"mov mve_checkpoint_epoch(%%rip), %%al\n\t"
		"mov %%r11, %%rcx\n\t"
		"lea -1(%%r11), %%rdx\n\t"
		"add %%r10, %%rdx\n\t"
		"jc 3f\n\t"			/* its end lies before it */
		"shr %0, %%rcx\n\t"
		"shr %0, %%rdx\n"
		"1:\tcmp %%al, %c1(%%rcx)\n\t"
		"jb 3f\n\t"
		"inc %%rcx\n\t"
		"cmp %%rdx, %%rcx\n\t"
		"jbe 1b\n"
		"2:\tclc\n"
		"3:\tpop %%rdx\n\t"
		".cfi_adjust_cfa_offset -8\n\t"
		"pop %%rcx\n\t"
		".cfi_adjust_cfa_offset -8\n\t"
		"pop %%rax\n\t"
		".cfi_adjust_cfa_offset -8\n\t"
		"jc mve_checkpoint_saves_range\n\t"
		"ret" : : "i"(REGION_SHIFT), "i"(TAGS_AT) : "memory");
}

__attribute__((naked)) void mve_checkpoint_save_zeros_at(void)
{
	__asm__(KEEPING("mov %%r11, %%rdi\n\tmov %%r10, %%rsi\n\t", mve_checkpoint_save_zeros)
		: : : "memory");
}

__attribute__((naked)) void mve_checkpoint_save_most_at(void)
{
	__asm__(KEEPING("mov %%r11, %%rdi\n\tmov %%r10, %%rsi\n\t", mve_checkpoint_save_most)
		: : : "memory");
}

/* A word that is aligned lies in one region.  (Those of two bytes come mostly because they are not,
 * as digits of a number are written: as ranges, which takes less time.) */
#define WORD(size)								\
	__attribute__((naked)) void mve_checkpoint_save_##size##_at(void)	\
	{									\
		__asm__("test $" #size "-1, %%r11b\n\t"			\
			"jz mve_checkpoint_save_at\n\t"				\
			"push %%r10\n\t"					\
			".cfi_adjust_cfa_offset 8\n\t"				\
			"mov $" #size ", %%r10d\n\t"				\
			"call mve_checkpoint_save_range_at\n\t"			\
			"pop %%r10\n\t"						\
			".cfi_adjust_cfa_offset -8\n\t"				\
			"ret" : : : "memory");					\
	}

WORD(4)
WORD(8)

/* What lies in the stack that is saved as it stands, or will come below it, needs no entry. */
void log_stack(uintptr_t low, uintptr_t sp, uintptr_t end)
{
	uintptr_t from = sp - low > STACK_AHEAD ? sp - STACK_AHEAD : low;
	uint8_t *first = tag_of(from), *last = tag_of(end - 1);

	for (uintptr_t page = (uintptr_t)first & -PAGE; page <= (uintptr_t)last; page += PAGE)
		tag_noted(page);
	memset(first + 1, state->epoch, last - first - 1);
}

/* The outermost checkpoint begins: the log is empty, but for room for what is saved ahead. */
void log_begin(void)
{
	size_t used = state->head * way->unit < LOG_MAX ? state->head * way->unit : LOG_MAX;

	MUST(state->depth == 0);
	state->counts.regions += state->head;
	if (used > state->counts.log_most)
		state->counts.log_most = used;
	if (used > LOG_KEPT)
		KERNEL_3(SYS_madvise, LOG_AT + LOG_KEPT, LOG_MAX - LOG_KEPT, MADV_DONTNEED);
	state->head = way->hot ? ahead_choose() : 0;
	state->ahead = state->head;
	state->serial++;
	state->turn++;
}

void log_trim(void)
{
	KERNEL_3(SYS_madvise, LOG_AT, LOG_MAX, MADV_DONTNEED);
}

/*
 * Back to a mark, the newest first.  What was not changed is not written: a store that faulted
 * as its page is read-only has come into the log, too.  A region's tag is of no epoch then: the
 * checkpoint around it may have no entry of it, and a second one does no harm.
 */
void log_undo(size_t mark, void (*also)(uintptr_t at, const void *bytes))
{
	MUST(state->head <= LOG_ENTRIES && mark <= state->head);
	for (size_t n = state->head; n-- > mark;) {
		struct entry *entry = LOG + n;
		uintptr_t at = entry->at & -REGION;

		if (entry->serial != state->serial)
			continue;
		if (memcmp((void *)at, entry->bytes, REGION))
			memcpy((void *)at, entry->bytes, REGION);
		if (also)
			also(at, entry->bytes);
		*tag_of(at) = 0;
		entry->serial = 0;
	}
	state->counts.regions += state->head - mark;
	state->head = mark;
	state->turn++;
}
