/* What a follower forbids itself because its leader did. */
#ifndef MVE_INSIDE_LANDLOCK_H
#define MVE_INSIDE_LANDLOCK_H

#include "engine/core/walk.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/gate/thread.h"

/* A call with the trait CONFINES has been answered. */
void landlock_note(struct thread *t, const struct walk *w);
/* What kept.def says of them. */
void landlock_gone(struct thread *t, struct numbers n);
void landlock_copied(int64_t from, int64_t to);
/* The process takes over. */
void landlock_make(struct thread *t);

#endif
