/*
 * The heap of programs that mve-cc has built.  Memory comes in spans, aligned to SPAN, out of
 * one reservation; a span's head says what it holds: blocks of one size, or the first part of
 * one large block, which then goes over as many spans as it needs.
 *
 * A free block's first word leads to the next one.  Free spans that lie together are one run, in a
 * list of runs of about its length; what is free at the end belongs to no list.
 *
 * This file is built with the pass: its stores are checked.  One lock for all threads.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "engine/checkpoint/runtime/heap.h"
#include "engine/checkpoint/mve/checkpoint.h"
#include "engine/checkpoint/runtime/kernel.h"
#include "engine/checkpoint/runtime/layout.h"

#define SPAN		(64ul << 10)
#define GRAIN		16ul
#define SMALL_MAX	(SPAN / 4)
#define CLASSES		48
#define PAGE		4096ul

/* Limit (Checkpoints): bytes of a program's heap, built by mve-cc.  Beyond: malloc fails, as
 * without memory. */
#define HEAP_MAX	(64ul << 30)

struct block {
	struct block *next;
};

/* At the beginning of a span, or of the first one of a large block. */
struct span {
	size_t size;		/* of each block; of a large one: its spans' bytes */
	uint32_t large;
	uint32_t class;
	struct span *next, *before;	/* free runs of about as many bytes */
	size_t room;		/* of a large block: with the head, what was asked for; of small
				 * ones: how many are free, while all are counted */
};

#define HEAD	64ul

#define SPANS_MAX	(HEAP_MAX / SPAN)
#define LISTS		21	/* of runs of 1, 2, 4, ... spans, and more */
#define LOOKED_AT	8	/* of a list, whose runs may be shorter, before longer ones are */

_Static_assert(1ul << (LISTS - 1) == SPANS_MAX, "a list for each run");

/* Limit (Checkpoints): bytes that stay behind the last block of a program's heap, when it was
 * larger.  Beyond: all of them are given back to the kernel. */
#define HEAP_KEPT	(4ul << 20)

_Static_assert(sizeof(struct span) <= HEAD, "the first block comes after the head");

/* What a thread has freed it takes again, without the latch.  This is memory as the rest is, and
 * goes back; a thread's own would not. */
#define KEPT_MAX	16

struct kept {
	struct block *first;
	size_t number;
};

#define KEPT_BEFORE	((HEAP_PLACES - 2) * CLASSES * sizeof(struct kept))

/* A page begins with what the first thread, place 1, keeps; for all others it lies before that, and
 * behind it come the heap's own words: a process has few pages of this. */
static struct {
	char before[PAGE - KEPT_BEFORE % PAGE];
	struct kept kept[HEAP_PLACES][CLASSES];		/* the last place is 0 */
	char *begin, *top, *end;
	char *bound;		/* the program means to go no further */
	char *used;		/* the top has been here; beyond are no pages */
	int refused;		/* no room (ulimit -v), for tags neither: libc's heap serves */
	struct block *free[CLASSES];
	char *fresh[CLASSES], *fresh_end[CLASSES];
	struct span *lists[LISTS];
	uint32_t runs[SPANS_MAX + 1];	/* of a free run's first and last span: its spans */
} heap __attribute__((aligned(PAGE)));

static pthread_mutex_t latch = PTHREAD_MUTEX_INITIALIZER;
extern char __libc_single_threaded;

static struct kept *kept_of(unsigned class)
{
	return &heap.kept[HEAP_PLACES - 1 - heap_place][class];
}

static void enter(void)
{
	if (!__libc_single_threaded)
		pthread_mutex_lock(&latch);
}

static void leave(void)
{
	if (!__libc_single_threaded)
		pthread_mutex_unlock(&latch);
}

/* Up to 256 bytes in steps of a grain; then four sizes for each doubling. */
static unsigned class_of(size_t size)
{
	unsigned bits;

	if (size <= 256)
		return size ? (size + GRAIN - 1) / GRAIN - 1 : 0;
	bits = 63 - __builtin_clzl(size - 1);
	return 16 + (bits - 8) * 4 + ((size - 1) >> (bits - 2)) % 4;
}

static size_t class_size(unsigned class)
{
	unsigned bits;

	if (class < 16)
		return (class + 1) * GRAIN;
	bits = 8 + (class - 16) / 4;
	return (1ul << bits) + ((class - 16) % 4 + 1) * (1ul << (bits - 2));
}

static int reserved(void)
{
	char *got;

	if (heap.begin || heap.refused)
		return !heap.refused;
	got = mmap(NULL, HEAP_MAX + SPAN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (got == MAP_FAILED) {
		heap.refused = 1;
		return 0;
	}
	heap.begin = (char *)(((uintptr_t)got + SPAN - 1) & -SPAN);
	heap.top = heap.used = heap.begin;
	heap.end = heap.bound = heap.begin + HEAP_MAX;
	if (heap.begin > got)
		munmap(got, heap.begin - got);
	munmap(heap.end, got + SPAN - heap.begin);
	return 1;
}

void heap_bound(size_t bytes)
{
	if (reserved())
		heap.bound = bytes < HEAP_MAX ? heap.begin + bytes : heap.end;
}

static size_t place_of(const struct span *span)
{
	return ((const char *)span - heap.begin) / SPAN;
}

static unsigned list_of(size_t spans)
{
	return 63 - __builtin_clzl(spans);
}

static void run_put(struct span *span, size_t spans)
{
	struct span **list = &heap.lists[list_of(spans)];

	span->size = spans * SPAN;
	span->before = NULL;
	span->next = *list;
	if (*list)
		(*list)->before = span;
	*list = span;
	heap.runs[place_of(span)] = heap.runs[place_of(span) + spans - 1] = spans;
}

static void run_take(struct span *span)
{
	size_t spans = span->size / SPAN;

	if (span->before)
		span->before->next = span->next;
	else
		heap.lists[list_of(spans)] = span->next;
	if (span->next)
		span->next->before = span->before;
	heap.runs[place_of(span)] = heap.runs[place_of(span) + spans - 1] = 0;
}

static struct span *run_find(size_t bytes)
{
	struct span *span = heap.lists[list_of(bytes / SPAN)];

	for (int n = 0; span && span->size < bytes; span = span->next)
		if (++n == LOOKED_AT)
			span = NULL;
	for (unsigned n = list_of(bytes / SPAN) + 1; !span && n < LISTS; n++)
		span = heap.lists[n];
	return span;
}

static struct span *spans_new(size_t bytes)
{
	struct span *span;

	if (!reserved() || heap.top > heap.bound || bytes > (size_t)(heap.bound - heap.top))
		return NULL;
	span = (struct span *)heap.top;
	heap.top += bytes;
	if (heap.used < heap.top)
		heap.used = heap.top;
	return span;
}

/* The first ones of a free run, or new ones. */
static struct span *spans_get(size_t bytes)
{
	struct span *span = run_find(bytes);

	if (!span)
		return spans_new(bytes);
	run_take(span);
	if (span->size > bytes)
		run_put((struct span *)((char *)span + bytes), (span->size - bytes) / SPAN);
	return span;
}

/* With a checkpoint open what was in them may be wanted again. */
static void trim(void)
{
	if (heap.used - heap.top <= (long)HEAP_KEPT || mve_checkpoint_depth())
		return;
	KERNEL_3(SYS_madvise, heap.top, heap.used - heap.top, MADV_DONTNEED);
	heap.used = heap.top;
}

static void spans_give(struct span *span)
{
	size_t place = place_of(span), spans = span->size / SPAN;
	uint32_t before = place ? heap.runs[place - 1] : 0, after = heap.runs[place + spans];

	if (after)
		run_take((struct span *)((char *)span + span->size));
	if (before) {
		span = (struct span *)((char *)span - before * SPAN);
		run_take(span);
	}
	spans += before + after;
	if ((char *)span + spans * SPAN != heap.top) {
		run_put(span, spans);
		return;
	}
	heap.top = (char *)span;
	trim();
}

/* A thread that stands in the heap has it as it was.  What was used is the word of a program that
 * has failed: it may have written there, too. */
void heap_trim(uintptr_t used)
{
	if (!heap.begin)
		return;
	if ((char *)used > heap.end)
		used = (uintptr_t)heap.end;
	if ((char *)used > heap.used)
		heap.used = (char *)used;
	if (heap.used - heap.top <= (long)HEAP_KEPT)
		return;
	if (__libc_single_threaded) {
		trim();
	} else if (pthread_mutex_trylock(&latch) == 0) {
		trim();
		pthread_mutex_unlock(&latch);
	}
}

static int refill(unsigned class)
{
	struct span *span = spans_get(SPAN);

	if (!span)
		return 0;
	span->size = class_size(class);
	span->class = class;
	span->large = 0;
	heap.fresh[class] = (char *)span + HEAD;
	heap.fresh_end[class] = (char *)span + SPAN;
	return 1;
}

static void *block_take(struct block **list)
{
	struct block *block = *list;

	*list = block->next;
	return block;
}

static void *small_get(unsigned class)
{
	struct block *block;
	size_t size = class_size(class);

	if (heap.free[class])
		return block_take(&heap.free[class]);
	if (heap.fresh_end[class] - heap.fresh[class] < (long)size && !refill(class))
		return NULL;
	block = (struct block *)heap.fresh[class];
	heap.fresh[class] += size;
	return block;
}

static size_t pages_of(size_t size)
{
	return (size + PAGE - 1) & -PAGE;
}

/* Who asks how much there is gets no more than pages of it: programs count by that. */
static void *large_get(size_t size)
{
	size_t bytes = (size + HEAD + SPAN - 1) & -SPAN;
	struct span *span = size < HEAP_MAX ? spans_get(bytes) : NULL;

	if (!span)
		return NULL;
	span->size = bytes;
	span->room = HEAD + pages_of(size) < bytes ? HEAD + pages_of(size) : bytes;
	span->large = 1;
	return (char *)span + HEAD;
}

void *__libc_malloc(size_t size);
void *__libc_memalign(size_t align, size_t size);

static void *kept_get(size_t size)
{
	struct kept *k = kept_of(class_of(size));

	if (!heap_place || !k->first)
		return NULL;
	k->number--;
	return block_take(&k->first);
}

void *mve_heap_malloc(size_t size)
{
	void *got = size <= SMALL_MAX ? kept_get(size) : NULL;

	if (got)
		return got;
	enter();
	got = size <= SMALL_MAX ? small_get(class_of(size)) : large_get(size);
	leave();
	if (!got && heap.refused)
		return __libc_malloc(size);
	if (!got)
		errno = ENOMEM;
	return got;
}

static int ours(const void *at)
{
	return heap.begin && (const char *)at >= heap.begin && (const char *)at < heap.top;
}

/* Every span of a small block has a head; a large one's is at its beginning only, and its
 * pointer lies in the first span. */
static struct span *span_of(const void *at)
{
	return (struct span *)((uintptr_t)at & -SPAN);
}

static struct block *block_of(const struct span *span, void *at)
{
	return (struct block *)((char *)span + HEAD +
		((char *)at - (char *)span - HEAD) / span->size * span->size);
}

static void give(void *at)
{
	struct span *span = span_of(at);
	struct block *block;

	if (span->large) {
		spans_give(span);
		return;
	}
	block = block_of(span, at);
	block->next = heap.free[span->class];
	heap.free[span->class] = block;
}

static int kept_put(void *at)
{
	struct span *span = span_of(at);
	struct kept *k = kept_of(span->class);
	struct block *block;

	if (!heap_place || span->large || k->number >= KEPT_MAX)
		return 0;
	block = block_of(span, at);
	block->next = k->first;
	k->first = block;
	k->number++;
	return 1;
}

void mve_heap_free(void *at)
{
	if (!at)
		return;
	if (!ours(at)) {
		libc_free(at);
		return;
	}
	if (kept_put(at))
		return;
	enter();
	give(at);
	leave();
}

#define ALL_FREE	(1ul << 32)

/* Counts the free blocks of each span, and gives up spans that hold no other. */
static void class_trim(unsigned class)
{
	struct block **from = &heap.free[class], *block;
	size_t all = (SPAN - HEAD) / class_size(class);

	for (block = *from; block; block = block->next)
		span_of(block)->room = 0;
	for (block = *from; block; block = block->next)
		span_of(block)->room++;
	while ((block = *from)) {
		struct span *span = span_of(block);

		if (span->room == all)
			span->room |= ALL_FREE;
		if (!(span->room & ALL_FREE)) {
			from = &block->next;
			continue;
		}
		*from = block->next;
		if (--span->room == ALL_FREE) {
			span->size = SPAN;
			spans_give(span);
		}
	}
}

static void give_back(char *from, char *to)
{
	KERNEL_3(SYS_madvise, from, to - from, MADV_DONTNEED);
}

void mve_heap_trim(void)
{
	enter();
	if (!mve_checkpoint_depth() && heap.begin) {
		for (unsigned n = 0; n < CLASSES; n++)
			class_trim(n);
		for (unsigned n = 0; n < LISTS; n++)
			for (struct span *run = heap.lists[n]; run; run = run->next)
				give_back((char *)run + PAGE, (char *)run + run->size);
		give_back(heap.top, heap.used);
		heap.used = heap.top;
	}
	leave();
}

static size_t rest(const void *at)
{
	struct span *span = span_of(at);
	size_t into = (const char *)at - (char *)span;

	if (span->large)
		return span->room - into;
	return span->size - (into - HEAD) % span->size;
}

uint64_t heap_rest(const void *at)
{
	return ours(at) ? rest(at) : 0;
}

void heap_bounds(uintptr_t *begin, uintptr_t *used, uintptr_t *end)
{
	*begin = (uintptr_t)heap.begin;
	*used = (uintptr_t)heap.used;
	*end = (uintptr_t)heap.end;
}

uintptr_t heap_used(void)
{
	return (uintptr_t)heap.used;
}

size_t heap_room(void)
{
	return heap.end - heap.used;
}

size_t mve_heap_usable_size(void *at)
{
	if (!at)
		return 0;
	return ours(at) ? rest(at) : libc_usable_size(at);
}

void *mve_heap_calloc(size_t number, size_t size)
{
	size_t bytes;
	void *got = NULL;

	if (__builtin_mul_overflow(number, size, &bytes))
		errno = ENOMEM;
	else
		got = mve_heap_malloc(bytes);
	return got ? memset(got, 0, bytes) : NULL;
}

/* A large block that has room in its spans. */
static int grown(void *at, size_t size)
{
	struct span *span = span_of(at);
	size_t into = (char *)at - (char *)span;

	if (!span->large || size > span->size - into || pages_of(size) > span->size - into)
		return 0;
	span->room = into + pages_of(size);
	return 1;
}

void *mve_heap_realloc(void *at, size_t size)
{
	size_t had;
	void *got;

	if (!at)
		return mve_heap_malloc(size);
	if (!ours(at))
		return libc_realloc(at, size);
	had = rest(at);
	if (size <= had && (size >= had / 2 || had <= 64))
		return at;
	if (size > had && grown(at, size))
		return at;
	got = mve_heap_malloc(size);
	if (got) {
		memcpy(got, at, size < had ? size : had);
		mve_heap_free(at);
	}
	return got;
}

/* A larger block, and a place in it; give() finds its beginning again.  A large one's place
 * must lie in its first span. */
void *mve_heap_memalign(size_t align, size_t size)
{
	char *got;

	if (align <= GRAIN)
		return mve_heap_malloc(size);
	if (align >= SPAN || size > HEAP_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	got = mve_heap_malloc(size + align);
	if (heap.refused) {
		mve_heap_free(got);
		return __libc_memalign(align, size);
	}
	return got ? (void *)(((uintptr_t)got + align - 1) & -align) : NULL;
}

void *mve_heap_aligned_alloc(size_t align, size_t size)
{
	return mve_heap_memalign(align, size);
}

int mve_heap_posix_memalign(void **at, size_t align, size_t size)
{
	void *got = mve_heap_memalign(align, size);

	if (!got)
		return ENOMEM;
	*at = got;
	return 0;
}

char *mve_heap_strndup(const char *text, size_t most)
{
	size_t size = strnlen(text, most);
	char *got = mve_heap_malloc(size + 1);

	if (got) {
		memcpy(got, text, size);
		got[size] = '\0';
	}
	return got;
}

char *mve_heap_strdup(const char *text)
{
	return mve_heap_strndup(text, SIZE_MAX);
}
