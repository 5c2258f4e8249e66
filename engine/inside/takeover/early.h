/* Signals for a version that leads, at a thread that does not yet. */
#ifndef MVE_INSIDE_EARLY_H
#define MVE_INSIDE_EARLY_H

#include "engine/inside/gate/thread.h"

/* Signals for a version that leads, at a thread that does not yet. */
bool early_may_come(void);
void early_note(const struct thread *t, const uint8_t *info);
/* One that had come to the twin; for this thread, or the process (0). */
void early_take(int32_t tid, const uint8_t *info);
void early_come(const struct thread *t);
void early_begin(void);
void early_forget(void);

#endif
