/*
 * The end of an object that rulec made: behind the ELF file, by which mve knows
 * before it gives the object to anybody that it is whole, and made for it.  rulec
 * writes it, the monitor checks it.
 */
#ifndef MVE_ABI_RULES_SEAL_H
#define MVE_ABI_RULES_SEAL_H

#include <stddef.h>
#include <stdint.h>

#define RULES_SEAL	"mve-seal"

struct rules_seal {
	char magic[8];		/* RULES_SEAL, without its end */
	uint32_t version;	/* RULES_VERSION of the rulec that made it */
	uint32_t flags;		/* enum rules_object_flags */
	uint64_t len;		/* bytes before the seal */
	uint64_t hash[2];	/* of them */
};

_Static_assert(sizeof(struct rules_seal) == 40, "layout of a seal");

struct rules_hash {
	uint64_t a, b;
};

#define RULES_HASH_BEGIN	((struct rules_hash){ 0xcbf29ce484222325ull, 1 })

/* Against accidents, not against anybody's will: who may write the file is trusted. */
static inline void rules_hash_add(struct rules_hash *h, const void *data, size_t n)
{
	const uint8_t *at = (const uint8_t *)data;

	for (size_t i = 0; i < n; i++) {
		h->a = (h->a ^ at[i]) * 0x100000001b3ull;
		h->b = (h->b + at[i] + 1) * 0x9e3779b97f4a7c15ull;
		h->b ^= h->b >> 29;
	}
}

#endif
