/* The told way: a plain call is made in the gate, and written down. */
#ifndef MVE_INSIDE_TELL_H
#define MVE_INSIDE_TELL_H

#include "engine/inside/gate/thread.h"

/* The gate has made the call in the thread's frame. */
void lead_tell(struct thread *t, long result);
/* It is about to make it: enum asked; and has made it after that. */
int lead_ask(struct thread *t);
void lead_asked_tell(struct thread *t, long result);
/* The rows that may go the told way go it from now on.  Their plans have been made. */
void tell_prepare(void);

#endif
