/* Where a request begins. */
#ifndef MVE_INSIDE_SEAM_H
#define MVE_INSIDE_SEAM_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

bool seam_is_call(long nr);
/* A call of this row may open the path of a seam. */
bool seam_may_open(const struct call_desc *d);
/* A request begins here: told, and counted. */
void seam_pass(struct thread *t);
/* The lane is told to who keeps the start. */
bool seam_in_start(const struct thread *t);
/* A follower has read what the start told: goes on in the leader's stream; false: not yet. */
bool seam_join(struct thread *t);
/* The call is the opening of a path that only says so. */
bool seam_opened(struct thread *t, const struct walk *w);

#endif
