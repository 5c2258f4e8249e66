/*
 * The copies that survive bad addresses (inside/gate/copy.S), where all addresses are good: of
 * each length, from and to places of each alignment, and not a byte beyond; texts up to their
 * zero, at the end of what is mapped, too.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

__asm__(".include \"engine/inside/gate/copy.S\"\n\t.text");

long target_in(void *to, uint64_t from, size_t len);
long target_text(void *to, uint64_t from, size_t room);

#define MOST	1200
#define PAGE	4096

static uint8_t from[MOST + 64], to[MOST + 64];

static void copy(size_t len, size_t at, size_t into)
{
	memset(to, 0xee, sizeof(to));
	cr_assert_eq(target_in(to + 8 + into, (uint64_t)(from + at), len), 0);
	cr_assert_eq(memcmp(to + 8 + into, from + at, len), 0, "%zu bytes", len);
	for (size_t i = 0; i < sizeof(to); i++)
		if (i < 8 + into || i >= 8 + into + len)
			cr_assert_eq(to[i], 0xee, "%zu bytes: beyond", len);
}

Test(copy, of_each_length)
{
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t len = 0; len < MOST; len++)
		for (size_t k = 0; k < 8; k++)
			copy(len, k, (k * 3 + len) % 8);
}

static void text(const char *at, size_t len, size_t room)
{
	long got;

	memset(to, 0xee, sizeof(to));
	got = target_text(to, (uint64_t)at, room);
	for (size_t i = room; i < sizeof(to); i++)
		cr_assert_eq(to[i], 0xee, "beyond its room");
	if (got == -E2BIG) {
		cr_assert_gt(len + 8, room);
		return;
	}
	cr_assert_eq(got, (long)len);
	cr_assert_eq(memcmp(to, at, len), 0);
	/* What stood behind it is nobody's affair. */
	for (size_t i = len; i < room; i++)
		cr_assert(to[i] == 0xee || !to[i], "%zu bytes, and what is behind", len);
}

Test(copy, of_texts)
{
	char *map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(map, MAP_FAILED);
	cr_assert_eq(mprotect(map + PAGE, PAGE, PROT_NONE), 0);
	for (size_t len = 0; len < 300; len++)
		for (size_t end = 0; end < 24; end++) {
			char *at = map + PAGE - 1 - end - len;

			memset(map, 'x', PAGE);
			memset(at, 0x80 | (int)(len % 100 + 1), len);
			at[len] = 0;
			text(at, len, MOST);
			text(at, len, 8 + len);
			text(at, len, len + end % 8);
		}
	munmap(map, 2 * PAGE);
}
