/* What a follower forbids itself because its leader did. */
#ifndef MVE_INSIDE_LANDLOCK_H
#define MVE_INSIDE_LANDLOCK_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

/* A call with the trait CONFINES has been answered; a descriptor was closed. */
void landlock_note(struct thread *t, const struct walk *w);
void landlock_closed(int64_t fd);
/* The process takes over. */
void landlock_make(struct thread *t);

#endif
