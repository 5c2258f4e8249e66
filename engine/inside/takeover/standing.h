/* What a process that stands tells of its descriptors. */
#ifndef MVE_INSIDE_STANDING_H
#define MVE_INSIDE_STANDING_H

#include "engine/inside/gate/thread.h"

/* The monitor wants this version to stand. */
bool standing_wanted(void);
/* The thread comes to stand, and goes on. */
void standing_begin(struct thread *t);
void standing_end(struct thread *t);

#endif
