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
/*
 * What its leader does next is to go back, but for the last words of what failed: these are taken,
 * and the next event is that.  As long as there are but words it is waited for.
 */
bool back_comes(struct thread *t);
/* ROLLBACK_CALL, of the runtime. */
long back_asked(struct thread *t);

#endif
