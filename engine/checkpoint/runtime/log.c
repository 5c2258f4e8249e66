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
 *
 * What one request has written the next one mostly writes, too, and to save it as the checkpoint
 * is opened costs a quarter.  So a region that is saved, and whose tag is the epoch before, was
 * saved twice running: it is hot, and is saved ahead from then on, until the tags are wiped.
 * Only memory that is always there can be: the program's data, and its heap.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/save.h"
#include "engine/checkpoint/runtime/stacks.h"
#include "engine/checkpoint/ways/undo.h"
#include "engine/checkpoint/ways/ways.h"

struct entry {
	uintptr_t at;		/* in its low bits: HOT */
	uint64_t serial;
	unsigned char bytes[REGION];
};

#define PAGE		4096ul
#define LOG		((struct entry *)LOG_AT)
#define LOG_ENTRIES	(LOG_MAX / sizeof(struct entry))

/* Entries that a thread has taken at once: threads meet seldom then, and nobody waits for what
 * each wrote before. */
#define ENTRIES_TAKEN	8

extern char __libc_single_threaded;

static __thread struct {
	size_t batch;	/* the next one, and above it, shifted, where they end: one word */
	uint64_t turn;	/* of the log: those of before are none of ours any more */
} ours;

#define BATCH_END	32

#define HOT		1ul

extern char __data_start __attribute__((visibility("hidden")));
extern char _end __attribute__((visibility("hidden")));

_Static_assert(LOG_ENTRIES < 1ul << 31, "a batch is one word");

/* Without the lock prefix it is still one instruction: a handler comes before or after it. */
static inline size_t next_of(size_t *count)
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

static inline size_t take(void)
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

/* By two registers, for a SAVES function has to keep each that it uses; and all that a callee may
 * use, where it calls one that is no such function. */
#define IN_LINE		__attribute__((always_inline)) static inline

IN_LINE void copy(struct entry *entry, uintptr_t region)
{
	for (size_t n = 0; n < REGION; n += 32)
		__asm__ volatile("movups %2, %%xmm0\n\tmovups %3, %%xmm1\n\t"
				 "movups %%xmm0, %0\n\tmovups %%xmm1, %1"
				 : "=m"(*(__int128 *)(entry->bytes + n)),
				   "=m"(*(__int128 *)(entry->bytes + n + 16))
				 : "m"(*(const __int128 *)(region + n)),
				   "m"(*(const __int128 *)(region + n + 16))
				 : "xmm0", "xmm1", "memory");
}

static inline int tag_put(uintptr_t page, uintptr_t place)
{
	uintptr_t was = 0;

	return __atomic_compare_exchange_n(&state->tag_page[place % TAG_PAGES], &was, page, 0,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED) || was == page;
}

/* Who wipes the tags finds the page, in one of two places. */
static inline void tag_noted(uintptr_t tag)
{
	uintptr_t page = tag / PAGE;

	if (*(volatile uintptr_t *)&state->tag_page[page % TAG_PAGES] != page &&
	    !tag_put(page, page) && !tag_put(page, page * 0x9E3779B97F4A7C15ul >> 48))
		state->tag_pages_more = 1;
}

/* Whether it meets memory that can be read at any time. */
static int stays(uintptr_t at, size_t size)
{
	uintptr_t begin, top, end;

	heap_bounds(&begin, &top, &end);
	return (at < top && at + size > begin) ||
	       (at < (uintptr_t)&_end && at + size > (uintptr_t)&__data_start);
}

/* With its tag as it is, which was found old, and its bytes.  Nothing where somebody else was
 * first. */
IN_LINE int fill(struct entry *entry, uintptr_t region, uint8_t epoch, uint64_t serial)
{
	if (*(volatile uint8_t *)tag_of(region) >= epoch)
		return 0;
	*(volatile uint64_t *)&entry->serial = serial;
	return 1;
}

SAVES __attribute__((noinline)) static uintptr_t hot_of(uintptr_t region)
{
	return stays(region, REGION) ? HOT : 0;
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

SAVES void mve_checkpoint_save(const void *pointer)
{
	uintptr_t at = (uintptr_t)pointer, region = at & -REGION;
	uint8_t *tag = tag_of(at), epoch = state->epoch, was = *(volatile uint8_t *)tag;
	size_t n;

	if (was >= epoch)
		return;
	if (state->undo) {
		undo_save(region);
		return;
	}
	if (at - state->stack_low >= state->stack_room && at - own_stack.low >= own_stack.room &&
	    !(frames_have(at) && frames_dead(at))) {
		n = take();
		if (n >= LOG_ENTRIES) {
			log_full();
			return;
		}
		LOG[n].serial = 0;
		LOG[n].at = region | (was && was == epoch - 1 ? hot_of(region) : 0);
		copy(LOG + n, region);
		if (!fill(LOG + n, region, epoch, state->serial))
			return;
	}
	tag_noted((uintptr_t)tag);
	*(volatile uint8_t *)tag = epoch;
}

SAVES void mve_checkpoint_save_range(const void *at, size_t size)
{
	uintptr_t region = (uintptr_t)at & -REGION, end = (uintptr_t)at + size;

	if (size == 0 || state->epoch == 0)
		return;
	for (; region < end; region += REGION)
		if (*(volatile uint8_t *)tag_of(region) < state->epoch)
			mve_checkpoint_save((const void *)region);
}

/* Those that have become hot are put behind those that were. */
static size_t hot_gather(void)
{
	size_t all = state->head < LOG_ENTRIES ? state->head : LOG_ENTRIES, to = state->hot;

	for (size_t n = to; n < all && to < HOT_MAX; n++)
		if (LOG[n].at & HOT && LOG[n].serial == state->serial)
			LOG[to++].at = LOG[n].at;
	return to;
}

IN_LINE void copy_wide(struct entry *entry, uintptr_t region)
{
	for (size_t n = 0; n < REGION; n += 32)
		__asm__ volatile("vmovups %1, %%ymm0\n\tvmovups %%ymm0, %0"
				 : "=m"(*(char (*)[32])(entry->bytes + n))
				 : "m"(*(const char (*)[32])(region + n)) : "xmm0", "memory");
}

IN_LINE void ahead(void (*copies)(struct entry *entry, uintptr_t region))
{
	const uint8_t epoch = state->epoch;
	const uint64_t serial = state->serial;
	struct entry *const end = LOG + state->hot;

	for (struct entry *entry = LOG; entry < end; entry++) {
		uintptr_t region = entry->at - HOT;

		copies(entry, region);
		if (fill(entry, region, epoch, serial))
			*(volatile uint8_t *)tag_of(region) = epoch;
	}
}

__attribute__((target("avx"))) static void ahead_wide(void)
{
	ahead(copy_wide);
	__asm__ volatile("vzeroupper");
}

/* The checkpoint is open: whoever comes in between saves by himself, behind these. */
void log_ahead(void)
{
	if (__builtin_cpu_supports("avx"))
		ahead_wide();
	else
		ahead(copy);
	state->counts.ahead += state->hot;
}

/* What lies in the stack that is saved as it stands, or will come below it, needs no entry. */
void log_stack(uintptr_t low, uintptr_t sp, uintptr_t end)
{
	uintptr_t from = sp - low > STACK_AHEAD ? sp - STACK_AHEAD : low;
	uint8_t *first = tag_of(from), *last = tag_of(end - 1);

	for (uintptr_t page = (uintptr_t)first & -PAGE; page <= (uintptr_t)last; page += PAGE)
		tag_noted(page);
	memset(first + 1, state->epoch, last - first - 1);
}

void log_forget(const void *at, size_t size)
{
	if (stays((uintptr_t)at, size))
		state->forgets = 1;
}

/* The outermost checkpoint begins: the log is empty, but for room for what is hot. */
void log_begin(void)
{
	size_t used = state->head * way->unit < LOG_MAX ? state->head * way->unit : LOG_MAX;

	MUST(state->depth == 0);
	state->counts.regions += state->head;
	if (used > state->counts.log_most)
		state->counts.log_most = used;
	if (used > LOG_KEPT)
		KERNEL_3(SYS_madvise, LOG_AT + LOG_KEPT, LOG_MAX - LOG_KEPT, MADV_DONTNEED);
	state->hot = way->hot && !state->forgets && state->last < EPOCH_LAST ? hot_gather() : 0;
	state->head = state->hot;
	state->forgets = 0;
	state->serial++;
	state->turn++;
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
	if (mark < state->hot)
		state->hot = mark;
	state->head = mark;
	state->turn++;
}
