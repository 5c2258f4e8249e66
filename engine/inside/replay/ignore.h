/* How it goes on behind a difference that is not to count. */
#ifndef MVE_INSIDE_IGNORE_H
#define MVE_INSIDE_IGNORE_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/replay/follow.h"

/* The call differs from the event, and nobody is to mind. */
enum step_result ignore_difference(struct thread *t, const struct event *e, struct walk *w,
				   long nr, long *result);

#endif
