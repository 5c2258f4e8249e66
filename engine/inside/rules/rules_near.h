/* The rule that came nearest, for a report. */
#ifndef MVE_INSIDE_RULES_NEAR_H
#define MVE_INSIDE_RULES_NEAR_H

#include "engine/core/walk.h"
#include "engine/inside/gate/thread.h"

/* For a report: the nearest rule goes into the slot. */
void rules_note_nearest(struct thread *t, struct walk *w, long nr);
void rules_near_note(struct thread *t, enum note_kind kind, unsigned rule, const char *text);

#endif
