/* Which events may be passed over. */
#ifndef MVE_INSIDE_PASSABLE_H
#define MVE_INSIDE_PASSABLE_H

#include "engine/core/walk.h"

/* By --strict queries must be the same, too. */
bool follow_is_strict(void);
bool call_is_elastic(const struct call_desc *d);
bool event_is_elastic(const struct event *e);
bool event_passable(const struct event *e);

#endif
