/* The told way: a plain call is made in the gate, and written down. */
#ifndef MVE_INSIDE_TELL_H
#define MVE_INSIDE_TELL_H

#include "engine/inside/gate/thread.h"

/* The rows that may go the told way go it from now on.  Their plans have been made. */
void tell_prepare(void);

#endif
