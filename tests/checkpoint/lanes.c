/*
 * Stores of some lanes of a vector go back, by whatever instruction; and where lanes that are off
 * would lie there need be no memory.
 */
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <mve/checkpoint.h>

#define CHECK(cond)	do { \
	if (!(cond)) { \
		printf("line %d: %s: %s\n", __LINE__, #cond, mve_checkpoint_why()); \
		exit(1); \
	} } while (0)

#define PAGE	4096
#define AVX	__attribute__((target("avx2"), noinline))
#define AVX512	__attribute__((target("avx512f"), noinline))

static char *page;	/* with none before or behind */

typedef void stores(char *at, unsigned mask);

static __attribute__((noinline)) void bytes_16(char *at, unsigned mask)
{
	char on[16];

	for (int n = 0; n < 16; n++)
		on[n] = mask >> n & 1 ? -1 : 0;
	_mm_maskmoveu_si128(_mm_set1_epi8('n'), _mm_loadu_si128((void *)on), at);
}

AVX static void words_8(char *at, unsigned mask)
{
	const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
	__m256i on = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)mask), bit), bit);

	_mm256_maskstore_epi32((int *)at, on, _mm256_set1_epi32(7));
}

AVX static void doubles_4(char *at, unsigned mask)
{
	const __m256i bit = _mm256_setr_epi64x(1, 2, 4, 8);
	__m256i on = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(mask), bit), bit);

	_mm256_maskstore_pd((double *)at, on, _mm256_set1_pd(7));
}

AVX512 static void words_16(char *at, unsigned mask)
{
	_mm512_mask_storeu_epi32(at, (__mmask16)mask, _mm512_set1_epi32(7));
}

AVX512 static void packed_16(char *at, unsigned mask)
{
	_mm512_mask_compressstoreu_epi32(at, (__mmask16)mask, _mm512_set1_epi32(7));
}

static __attribute__((noinline)) void taken_back(stores *store, char *at, unsigned mask)
{
	char was[PAGE];
	int got;

	memcpy(was, page, PAGE);
	got = mve_checkpoint_open();
	CHECK(got >= 0);
	if (got == 0) {
		store(at, mask);
		CHECK(!mask || memcmp(was, page, PAGE));
		mve_checkpoint_restore();
	}
	CHECK(!memcmp(was, page, PAGE));
}

static void by_chance(stores *store, unsigned lanes)
{
	for (unsigned n = 0; n < 1000; n++)
		taken_back(store, page + n * 3, (n * 40503u >> 3) % (1u << lanes));
}

/* At each end of the page as many lanes as there is room for. */
static void at_ends(stores *store, unsigned lanes, unsigned size, int packed)
{
	for (unsigned room = 0; room <= lanes; room++) {
		unsigned low = (1u << room) - 1;

		taken_back(store, page + PAGE - room * size, low);
		if (!packed)
			taken_back(store, page - room * size, ((1u << lanes) - 1) & ~low);
	}
	by_chance(store, lanes);
}

int main(void)
{
	page = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED && !munmap(page, PAGE) && !munmap(page + 2 * PAGE, PAGE));
	page += PAGE;
	for (int n = 0; n < PAGE; n++)
		page[n] = (char)(n % 100);
	by_chance(bytes_16, 16);	/* the processor itself may look at lanes that are off */
	if (__builtin_cpu_supports("avx2")) {
		at_ends(words_8, 8, 4, 0);
		at_ends(doubles_4, 4, 8, 0);
	}
	if (__builtin_cpu_supports("avx512f")) {
		at_ends(words_16, 16, 4, 0);
		at_ends(packed_16, 16, 4, 1);
	}
	puts("lanes: ok");
}
