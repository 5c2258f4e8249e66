/* What rules see: events ahead of the cursor, and the call's own memory. */
#ifndef MVE_INSIDE_RULES_SIGHT_H
#define MVE_INSIDE_RULES_SIGHT_H

#include "engine/core/ring.h"
#include "engine/inside/gate/thread.h"

/* The memory behind an argument of the follower's call. */
struct view follow_own_bytes(struct thread *t, unsigned i);
/* Drops the first n events that rules see; the last one's flags. */
uint8_t rules_drop(struct thread *t, unsigned n);

enum sight { SEEN, UNSEEN, BARRIER };

void sight_begin(struct thread *t);
size_t sight_piece(struct thread *t, struct reader *r, size_t want, const uint8_t **at);
enum sight sight_of(struct thread *t, const struct event *e, unsigned ahead);
const struct rules_call *sight_peek(void *arg, unsigned i);
struct view sight_bytes(void *arg, const struct rules_call *call, unsigned i);

#endif
