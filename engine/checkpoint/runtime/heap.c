/*
 * The heap of programs that mve-cc has built.  Memory comes in spans, aligned to SPAN, out of
 * one reservation; a span's head says what it holds: blocks of one size, or the first part of
 * one large block, which then goes over as many spans as it needs.
 *
 * A free block's first word leads to the next one.
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
	struct span *next;	/* free ones of as many bytes */
	size_t room;		/* of a large block: with the head, what was asked for */
};

#define HEAD	64ul

_Static_assert(sizeof(struct span) <= HEAD, "the first block comes after the head");

static struct {
	char *begin, *top, *end;
	int refused;		/* no room (ulimit -v), for tags neither: libc's heap serves */
	struct block *free[CLASSES];
	char *fresh[CLASSES], *fresh_end[CLASSES];
	struct span *spans;	/* free ones, of any size */
} heap;

/* What a thread has freed it takes again, without the latch.  This is memory as the rest is, and
 * goes back; a thread's own would not. */
#define KEPT_MAX	16

static struct kept {
	struct block *first;
	size_t number;
} kept[HEAP_PLACES][CLASSES];

static pthread_mutex_t latch = PTHREAD_MUTEX_INITIALIZER;
extern char __libc_single_threaded;

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
	heap.top = heap.begin;
	heap.end = heap.begin + HEAP_MAX;
	if (heap.begin > got)
		munmap(got, heap.begin - got);
	munmap(heap.end, got + SPAN - heap.begin);
	return 1;
}

/* A free run of spans that is just as large, or new ones. */
static struct span *spans_get(size_t bytes)
{
	struct span **from, *span;

	for (from = &heap.spans; (span = *from); from = &span->next)
		if (span->size == bytes) {
			*from = span->next;
			return span;
		}
	if (!reserved() || bytes > (size_t)(heap.end - heap.top))
		return NULL;
	span = (struct span *)heap.top;
	heap.top += bytes;
	return span;
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
void *__libc_realloc(void *at, size_t size);
void __libc_free(void *at);

static void *kept_get(size_t size)
{
	struct kept *k = &kept[heap_place][class_of(size)];

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
		span->next = heap.spans;
		heap.spans = span;
		return;
	}
	block = block_of(span, at);
	block->next = heap.free[span->class];
	heap.free[span->class] = block;
}

static int kept_put(void *at)
{
	struct span *span = span_of(at);
	struct kept *k = &kept[heap_place][span->class];
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
		__libc_free(at);
		return;
	}
	if (kept_put(at))
		return;
	enter();
	give(at);
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

void heap_bounds(uintptr_t *begin, uintptr_t *top, uintptr_t *end)
{
	*begin = (uintptr_t)heap.begin;
	*top = (uintptr_t)heap.top;
	*end = (uintptr_t)heap.end;
}

size_t malloc_usable_size(void *at);

size_t mve_heap_usable_size(void *at)
{
	if (!at)
		return 0;
	return ours(at) ? rest(at) : malloc_usable_size(at);
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
		return __libc_realloc(at, size);
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
