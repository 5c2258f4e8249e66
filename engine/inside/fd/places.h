/* Where writes to files with mirrors go. */
#ifndef MVE_INSIDE_PLACES_H
#define MVE_INSIDE_PLACES_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

/* Behind a leader's calls on descriptors, once it has told a file that it writes. */
void places_made(struct thread *t, const struct walk *w, uint64_t seq);
/* A leader's descriptors of a file that has mirrors. */
void places_begin(struct thread *t, int64_t fd, const struct statx *st);

#define MIRROR_LEADS	(-1)

#endif
