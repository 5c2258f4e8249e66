/*
 * SHA-256.  Its constants are the first bits of the fractions of roots of primes; they are
 * computed, in integers, so that there is no table to mistype.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/bytes/sha256.h"

#define ROUNDS	64

static uint32_t constant[ROUNDS], first[8];

/* The largest whole number whose power, the second or third, is at most n. */
static uint64_t root_of(unsigned __int128 n, int power)
{
	uint64_t root = 0;

	for (int bit = 36; bit >= 0; bit--) {
		unsigned __int128 r = root | UINT64_C(1) << bit;

		if ((power == 2 ? r * r : r * r * r) <= n)
			root = (uint64_t)r;
	}
	return root;
}

static bool is_prime(unsigned n)
{
	for (unsigned d = 2; d * d <= n; d++)
		if (n % d == 0)
			return false;
	return true;
}

static void constants_make(void)
{
	unsigned n = 0;

	for (unsigned p = 2; n < ROUNDS; p++) {
		if (!is_prime(p))
			continue;
		if (n < 8)
			first[n] = (uint32_t)root_of((unsigned __int128)p << 64, 2);
		constant[n++] = (uint32_t)root_of((unsigned __int128)p << 96, 3);
	}
}

static uint32_t turned(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static void schedule_make(uint32_t w[ROUNDS], const uint8_t *block)
{
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < ROUNDS; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) +
		       (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
	}
}

static void block_add(struct sha256 *s, const uint8_t *block)
{
	uint32_t w[ROUNDS], v[8];

	schedule_make(w, block);
	memcpy(v, s->state, sizeof(v));
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t e = v[4], a = v[0];
		uint32_t one = v[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) +
			       ((e & v[5]) ^ (~e & v[6])) + constant[i] + w[i];
		uint32_t two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) +
			       ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		s->state[i] += v[i];
}

void sha256_begin(struct sha256 *s)
{
	if (!constant[0])
		constants_make();
	*s = (struct sha256){ 0 };
	memcpy(s->state, first, sizeof(first));
}

void sha256_add(struct sha256 *s, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len) {
		size_t have = s->len % sizeof(s->block), n = sizeof(s->block) - have;

		n = n < len ? n : len;
		memcpy(s->block + have, at, n);
		s->len += n;
		at += n;
		len -= n;
		if (have + n == sizeof(s->block))
			block_add(s, s->block);
	}
}

void sha256_end(struct sha256 *s, char text[SHA256_TEXT])
{
	static const uint8_t fill[64] = { 0x80 };
	uint64_t bits = s->len * 8;
	uint8_t size[8];

	for (int i = 0; i < 8; i++)
		size[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(s, fill, 1 + (119 - s->len % 64) % 64);
	sha256_add(s, size, sizeof(size));
	MUST(s->len % sizeof(s->block) == 0);
	for (int i = 0; i < 8; i++)
		sprintf(text + 8 * i, "%08x", s->state[i]);
}
