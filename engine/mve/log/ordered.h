/*
 * The events of a recording in an order in which they may have happened: none before what it
 * comes behind (abi/edge.h), and a thread's or process's behind the call that made it.
 */
#ifndef MVE_LOG_ORDERED_H
#define MVE_LOG_ORDERED_H

#include "engine/outside/log/events.h"

/*
 * As events_each; `over`: the life of its lane is over with it, and there is no event.  All that
 * is told is valid until the function returns.
 */
typedef void ordered_take(void *ctx, const struct told *t, bool over);
bool events_ordered(struct frames *f, ordered_take *take, frame_take *other, void *ctx);

#endif
