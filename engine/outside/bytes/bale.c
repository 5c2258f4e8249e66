/*
 * Bales, by zstd.  All of a segment are one stream of it, which is flushed at the end of each:
 * so a bale of a few calls is small, too, for what it says was said before.  A bale is opened
 * behind those before it in the segment, and needs none behind it.
 *
 * How far back a bale may refer is bounded for all levels: it is the memory of who reads, who
 * believes nothing.  What goes wrong in compressing is no reason to lose anything: frames are
 * written as they are, up to the next segment.
 */
#include <stdlib.h>
#include <zstd.h>

#include "engine/core/must.h"
#include "engine/outside/bytes/bale.h"

#define WINDOW_LOG	21	/* bytes that a bale may refer back to: 1 << that */

_Static_assert(ZSTD_COMPRESSBOUND(LOG_BALE_MAX) <= LOG_BALED_MAX, "the worst of bales");

struct baler {
	ZSTD_CCtx *stream;
	int level;
	bool broken;		/* in this segment there are no more bales */
};

/* A bale is made while the ring fills: of a few ten milliseconds' work. */
static const struct {
	int level;		/* up to this one */
	uint64_t most;
} batches[] = {
	{ 5, LOG_BALE_MAX }, { 9, 1u << 20 }, { 15, 256u << 10 }, { BALE_LEVELS, 64u << 10 },
};

size_t baler_room(void)
{
	return LOG_BALED_MAX;
}

struct baler *baler_new(int level)
{
	struct baler *b = calloc(1, sizeof(*b));

	MUST(level >= 1 && level <= BALE_LEVELS);
	if (!b)
		return NULL;
	b->level = level;
	b->stream = ZSTD_createCCtx();
	if (b->stream &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(b->stream, ZSTD_c_compressionLevel, level)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(b->stream, ZSTD_c_windowLog, WINDOW_LOG)))
		return b;
	baler_free(b);
	return NULL;
}

void baler_free(struct baler *b)
{
	if (b)
		ZSTD_freeCCtx(b->stream);
	free(b);
}

void baler_segment(struct baler *b)
{
	b->broken = ZSTD_isError(ZSTD_CCtx_reset(b->stream, ZSTD_reset_session_only));
}

uint64_t baler_most(const struct baler *b)
{
	unsigned i = 0;

	while (b->level > batches[i].level)
		i++;
	return batches[i].most;
}

/* All of the part goes in; the last one's end brings all of them out. */
static bool part_take(struct baler *b, ZSTD_outBuffer *out, const struct iovec *part, bool last)
{
	ZSTD_inBuffer in = { part->iov_base, part->iov_len, 0 };
	ZSTD_EndDirective what = last ? ZSTD_e_flush : ZSTD_e_continue;
	size_t left;

	do {
		left = ZSTD_compressStream2(b->stream, out, &in, what);
		if (ZSTD_isError(left) || (out->pos == out->size && left))
			return false;
	} while (in.pos < in.size || (last && left));
	return true;
}

uint32_t bale_make(struct baler *b, const struct iovec *part, unsigned parts, uint8_t *to)
{
	ZSTD_outBuffer out = { to, baler_room(), 0 };

	MUST(parts);
	for (unsigned i = 0; i < parts && !b->broken; i++)
		b->broken = !part_take(b, &out, &part[i], i == parts - 1);
	return b->broken ? 0 : (uint32_t)out.pos;
}

/* --- opening -------------------------------------------------------------------------- */

struct unbaler {
	ZSTD_DCtx *stream;
	uint8_t *bytes;
	size_t room;
};

struct unbaler *unbaler_new(void)
{
	struct unbaler *u = calloc(1, sizeof(*u));

	MUST(u);
	u->stream = ZSTD_createDCtx();
	MUST(u->stream);
	MUST(!ZSTD_isError(ZSTD_DCtx_setParameter(u->stream, ZSTD_d_windowLogMax, WINDOW_LOG)));
	return u;
}

void unbaler_free(struct unbaler *u)
{
	if (!u)
		return;
	ZSTD_freeDCtx(u->stream);
	free(u->bytes);
	free(u);
}

void unbaler_segment(struct unbaler *u)
{
	ZSTD_DCtx_reset(u->stream, ZSTD_reset_session_only);
}

/* It is all that the bale has, and no more. */
static bool all_out(struct unbaler *u, ZSTD_inBuffer *in, ZSTD_outBuffer *out)
{
	size_t before;

	do {
		before = in->pos + out->pos;
		if (ZSTD_isError(ZSTD_decompressStream(u->stream, out, in)))
			return false;
	} while (in->pos + out->pos > before);
	return in->pos == in->size && out->pos == out->size;
}

const uint8_t *bale_open(struct unbaler *u, const void *bale, size_t len, size_t size)
{
	ZSTD_inBuffer in = { bale, len, 0 };
	ZSTD_outBuffer out;

	MUST(size && size <= LOG_BALE_MAX);
	if (size > u->room) {
		free(u->bytes);
		u->bytes = malloc(size);
		u->room = size;
		MUST(u->bytes);
	}
	out = (ZSTD_outBuffer){ u->bytes, size, 0 };
	return all_out(u, &in, &out) ? u->bytes : NULL;
}
