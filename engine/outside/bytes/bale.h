/*
 * Frames that are compressed together (LOG_BALE): making bales of what is written, and frames
 * of what is read.
 */
#ifndef MVE_OUTSIDE_BYTES_BALE_H
#define MVE_OUTSIDE_BYTES_BALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "engine/abi/log.h"

#define BALE_LEVELS	19	/* of zstd, from 1 on: those behind want memory, and time */

struct baler;

/* NULL: there is no memory. */
struct baler *baler_new(int level);
void baler_free(struct baler *b);
/* The next bale is a segment's first. */
void baler_segment(struct baler *b);
/* So many bytes of frames make a bale that does not keep the recorder for long. */
uint64_t baler_most(const struct baler *b);
/* Bytes that a bale may have. */
size_t baler_room(void);
/*
 * The parts as a bale, at `to`, which has baler_room(); its size, or 0: they are to be written as
 * they are.
 */
uint32_t bale_make(struct baler *b, const struct iovec *part, unsigned parts, uint8_t *to);

struct unbaler;

struct unbaler *unbaler_new(void);
void unbaler_free(struct unbaler *u);
void unbaler_segment(struct unbaler *u);
/* What is in a bale, until the next is opened: `size` bytes; NULL: it is not that. */
const uint8_t *bale_open(struct unbaler *u, const void *bale, size_t len, size_t size);

#endif
