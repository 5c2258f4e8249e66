/* Who holds a lane's chunks: versions that have still to read them, and their images. */
#ifndef MVE_CORE_HOLDS_H
#define MVE_CORE_HOLDS_H

#include "engine/core/ring.h"

/*
 * Followers that still need the lane's chunk `serial`, as bits.  One that came late and is
 * not told of the lane reads none of it: its cursor would hold the lane for ever.  The
 * start's record needs what it was told until it has that; then its cursor says so.
 */
uint32_t held_by(const struct streams *s, const struct section *own, uint32_t index,
		 uint32_t serial);
/* The version itself has not read it: where its image alone holds it, it is let go for room. */
bool version_reads(const struct streams *s, const struct section *own, uint32_t version,
		   uint32_t index, uint32_t serial);
/* There is no room for who tells in the lane (LANES: in none yet): no image is told anything any
 * more that need not be waited for.  True: one was. */
bool images_let_go(const struct streams *s, struct section *own, uint32_t index);
/* One would be. */
bool images_may_go(const struct streams *s, const struct section *own, uint32_t index);

#endif
