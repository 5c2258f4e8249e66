/* A call that is not its event's. */
#ifndef MVE_INSIDE_DIVERGE_H
#define MVE_INSIDE_DIVERGE_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

long follow_diverged(struct thread *t, struct walk *w, long nr, uint32_t what,
		     const struct mismatch *m);

#endif
