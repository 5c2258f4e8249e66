/* The told way: a plain call is made in the gate, and written down. */
#ifndef MVE_INSIDE_TELL_H
#define MVE_INSIDE_TELL_H

#include "engine/inside/gate/thread.h"

void lead_tell(struct thread *t, long result);
/* Sends the rows there that may go; their plans are made. */
void tell_prepare(void);

#endif
