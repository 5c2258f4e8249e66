/* What clients sent last, kept for findings. */
#ifndef MVE_INSIDE_INPUTS_H
#define MVE_INSIDE_INPUTS_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

/* For a follower with a sanitizer. */
void inputs_note(const struct thread *t, const struct walk *w, long nr);
void inputs_born(const struct thread *t);
/* A call that no twin has: its words, if a runtime reports by it, and the end. */
void report_tell(struct thread *t, long nr);

#endif
