/* Which events may be passed over. */
#ifndef MVE_INSIDE_PASSABLE_H
#define MVE_INSIDE_PASSABLE_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

/* By --strict queries must be the same, too. */
bool follow_is_strict(void);
bool call_is_elastic(const struct call_desc *d);
bool event_is_elastic(const struct event *e);
bool event_passable(const struct event *e);
/* So many were answered behind this one that nobody will ask for it any more. */
bool ahead_full(const struct thread *t, const struct event *e);

#endif
