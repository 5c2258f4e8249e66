/*
 * malloc and its kin, as the server and its libraries see them: libc's own behind a note.
 *
 * A bit for every 16 bytes says that an allocation begins there; its size stands in the last
 * eight bytes of what libc gave, beyond what was asked for.  A bit is cleared before its memory
 * is given back and set after it is got, so that no two threads mean the same one.  Nothing is
 * ordered by bits: who looks at those of others looks when all threads stand (points.c).
 *
 * All of it is zero at first.  Words that lead into the old build are looked for in what was
 * asked for (state/words.c): a pointer of before, in room that a string has not filled, would be
 * led on into the new build together with the string's last bytes, which lie in its first ones.
 */
#include "engine/update/heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GRAIN_BITS	4
#define REGION_BITS	26	/* 64 MiB have a map of 512 KiB */
#define ADDRESS_BITS	47
#define WORD_BITS	6
#define REGION_WORDS	(1ul << (REGION_BITS - GRAIN_BITS - WORD_BITS))
#define REGIONS		(1ul << (ADDRESS_BITS - REGION_BITS))
#define NOTE		sizeof(size_t)

void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *at, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *at);

void *memalign(size_t align, size_t size);
size_t malloc_usable_size(void *at);
void *valloc(size_t size);
void *pvalloc(size_t size);

typedef uint64_t word;

static word *maps[REGIONS];	/* zero when they are new, so that a map's address is all */
static size_t (*usable_of)(void *);

static size_t usable(void *at)
{
	size_t (*of)(void *) = __atomic_load_n(&usable_of, __ATOMIC_RELAXED);

	if (!of) {
		of = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
		__atomic_store_n(&usable_of, of, __ATOMIC_RELAXED);
	}
	return of(at);
}

static size_t *note_of(void *at)
{
	return (size_t *)((char *)at + usable(at) - NOTE);
}

static word *map_new(uintptr_t region)
{
	word *none = NULL, *made = mmap(NULL, REGION_WORDS * sizeof(word), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (made == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&maps[region], &none, made, false, __ATOMIC_RELAXED,
			__ATOMIC_RELAXED))
		return made;
	munmap(made, REGION_WORDS * sizeof(word));
	return none;
}

static word *word_of(uintptr_t at, bool make)
{
	uintptr_t region = at >> REGION_BITS;
	word *map = region < REGIONS ? __atomic_load_n(&maps[region], __ATOMIC_RELAXED) : NULL;

	if (!map && make && region < REGIONS)
		map = map_new(region);
	return map ? &map[at >> (GRAIN_BITS + WORD_BITS) & (REGION_WORDS - 1)] : NULL;
}

static uint64_t bit_of(uintptr_t at)
{
	return 1ull << (at >> GRAIN_BITS & 63);
}

/* No memory for the map: no memory. */
static void *noted(void *at, size_t size)
{
	word *w = at ? word_of((uintptr_t)at, true) : NULL;

	if (!w) {
		__libc_free(at);
		errno = ENOMEM;
		return NULL;
	}
	*note_of(at) = size;
	__atomic_fetch_or(w, bit_of((uintptr_t)at), __ATOMIC_RELAXED);
	return at;
}

static void forget(void *at)
{
	word *w = word_of((uintptr_t)at, false);

	if (w)
		__atomic_fetch_and(w, ~bit_of((uintptr_t)at), __ATOMIC_RELAXED);
}

static bool too_much(size_t size)
{
	if (size < PTRDIFF_MAX - 2 * NOTE)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return too_much(size) ? NULL : noted(__libc_calloc(1, size + NOTE), size);
}

void *calloc(size_t n, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(n, size, &all) || too_much(all)) {
		errno = ENOMEM;
		return NULL;
	}
	return noted(__libc_calloc(1, all + NOTE), all);
}

static bool is_noted(const void *at)
{
	word *w = word_of((uintptr_t)at, false);

	return w && (__atomic_load_n(w, __ATOMIC_RELAXED) & bit_of((uintptr_t)at));
}

void *realloc(void *at, size_t size)
{
	bool was = at && is_noted(at);
	size_t old = was ? *note_of(at) : 0;
	void *to;

	if (!at)
		return malloc(size);
	if (!size) {
		free(at);
		return NULL;
	}
	if (too_much(size))
		return NULL;
	forget(at);
	to = __libc_realloc(at, size + NOTE);
	if (to && was && size > old)
		memset((char *)to + old, 0, size - old);
	if (to)
		return noted(to, size);
	if (was)
		noted(at, old);
	errno = ENOMEM;
	return NULL;
}

void free(void *at)
{
	if (!at)
		return;
	forget(at);
	__libc_free(at);
}

void *memalign(size_t align, size_t size)
{
	void *at = too_much(size) ? NULL : __libc_memalign(align, size + NOTE);

	if (at)
		memset(at, 0, size);
	return noted(at, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **to, size_t align, size_t size)
{
	int before = errno;
	void *at;

	if (align < sizeof(void *) || (align & (align - 1)))
		return EINVAL;
	at = memalign(align, size);
	errno = before;
	if (!at)
		return ENOMEM;
	*to = at;
	return 0;
}

void *valloc(size_t size)
{
	return memalign(4096, size);
}

void *pvalloc(size_t size)
{
	return memalign(4096, (size + 4095) & ~4095ul);
}

size_t malloc_usable_size(void *at)
{
	return !at ? 0 : is_noted(at) ? *note_of(at) : usable(at);
}

/* --- looking ---------------------------------------------------------------- */

/* The last bit at or before this place; 0: none in its region. */
static uintptr_t begins_in(uintptr_t at)
{
	uintptr_t first = at >> REGION_BITS << REGION_BITS;
	uint64_t mask = bit_of(at) | (bit_of(at) - 1);
	word *w = word_of(at, false);

	for (at &= ~((1ul << (GRAIN_BITS + WORD_BITS)) - 1); w; w--) {
		uint64_t bits = __atomic_load_n(w, __ATOMIC_RELAXED) & mask;

		if (bits)
			return at + ((63ul - (unsigned)__builtin_clzll(bits)) << GRAIN_BITS);
		if (at == first)
			break;
		at -= 1ul << (GRAIN_BITS + WORD_BITS);
		mask = ~0ull;
	}
	return 0;
}

char *heap_base(const void *at, size_t *size)
{
	uintptr_t region = (uintptr_t)at >> REGION_BITS, begin = 0, from = (uintptr_t)at;

	if (region >= REGIONS)
		return NULL;
	while (!(begin = begins_in(from)) && region-- > 0)
		from = ((region + 1) << REGION_BITS) - 1;
	if (!begin)
		return NULL;
	*size = *note_of((void *)begin);
	return (uintptr_t)at - begin <= *size ? (char *)begin : NULL;
}

static void word_each(uint64_t bits, uintptr_t at, void (*look)(void *, char *, size_t), void *arg)
{
	for (; bits; bits &= bits - 1) {
		char *begin = (char *)(at + ((uintptr_t)__builtin_ctzll(bits) << GRAIN_BITS));

		look(arg, begin, *note_of(begin));
	}
}

void heap_each(void (*look)(void *arg, char *at, size_t size), void *arg)
{
	for (uintptr_t region = 0; region < REGIONS; region++) {
		const word *map = __atomic_load_n(&maps[region], __ATOMIC_RELAXED);

		for (uintptr_t i = 0; map && i < REGION_WORDS; i++)
			if (map[i])
				word_each(map[i], (region << REGION_BITS) +
					(i << (GRAIN_BITS + WORD_BITS)), look, arg);
	}
}
