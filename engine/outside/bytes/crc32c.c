/*
 * CRC32C: by the processor's own instruction where it has one (SSE 4.2), else by a table.
 */
#include <cpuid.h>
#include <stdbool.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/bytes/crc32c.h"

#define POLYNOMIAL	0x82f63b78u	/* its bits from the lowest on */

__attribute__((target("sse4.2")))
static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t len)
{
	uint64_t wide = crc, word;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	for (; len; at++, len--)
		crc = __builtin_ia32_crc32qi(crc, *at);
	return crc;
}

static uint32_t by_table(uint32_t crc, const uint8_t *at, size_t len)
{
	static uint32_t table[256];

	for (uint32_t i = 0; !table[255] && i < 256; i++) {
		uint32_t word = i;

		for (int bit = 0; bit < 8; bit++)
			word = word >> 1 ^ (word & 1 ? POLYNOMIAL : 0);
		table[i] = word;
	}
	for (; len; at++, len--)
		crc = crc >> 8 ^ table[(crc ^ *at) & 255];
	return crc;
}

static bool has_instruction(void)
{
	static int known = -1;
	unsigned a, b, c = 0, d;

	if (known < 0)
		known = __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_2;
	return known;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
	MUST(bytes || !len);
	return ~(has_instruction() ? by_instruction(~crc, bytes, len) : by_table(~crc, bytes, len));
}
