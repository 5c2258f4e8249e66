/* Requests that are taken back: what their calls do, and what their runtime asks. */
#ifndef MVE_INSIDE_BACK_H
#define MVE_INSIDE_BACK_H

#include "engine/inside/gate/thread.h"

/* Calls of which something may be noted take the long way. */
void back_begin(void);
/* A call of an open request is about to be made; true: it is the request's end by a signal, and
 * the thread goes elsewhere. */
bool back_before(struct thread *t, long nr);
/* It was made. */
void back_after(struct thread *t, long nr, long result);
/* ROLLBACK_CALL, of the runtime. */
long back_asked(struct thread *t);

#endif
