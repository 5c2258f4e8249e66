/* The last calls of a thread, for reports. */
#ifndef MVE_INSIDE_WINDOW_H
#define MVE_INSIDE_WINDOW_H

#include "engine/inside/gate/thread.h"

void place_note(struct thread *t, uint64_t place, uint64_t stack, const uint64_t saved[SAVED]);
/* ... in the call that is served. */
void place_note_call(struct thread *t);
struct window_row *window_note(struct thread *t, const uint64_t *args, long nr);
void window_event(struct thread *t, struct window_row *w, const struct event *e);
void window_end(struct window_row *w, int64_t result, enum row_end end);

#endif
