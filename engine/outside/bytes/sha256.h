/* SHA-256 (FIPS 180-4): what names a file by its content. */
#ifndef MVE_OUTSIDE_BYTES_SHA256_H
#define MVE_OUTSIDE_BYTES_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_TEXT	65

struct sha256 {
	uint32_t state[8];
	uint64_t len;
	uint8_t block[64];
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t len);
/* As 64 digits and a zero. */
void sha256_end(struct sha256 *s, char text[SHA256_TEXT]);

#endif
