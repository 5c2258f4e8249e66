/* CRC32C (Castagnoli), as processors compute it. */
#ifndef MVE_OUTSIDE_CRC32C_H
#define MVE_OUTSIDE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes that go on where those of `crc` end; 0: they are the first. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);

#endif
