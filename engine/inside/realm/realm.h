/* The part of the streams that a process of certain rights may write. */
#ifndef MVE_INSIDE_REALM_H
#define MVE_INSIDE_REALM_H

#include "engine/inside/gate/thread.h"

/* A leader's call with the trait RIGHTS was made: it may have given or taken some. */
void realm_changed(struct thread *t, long nr);
/* They changed when the process could not leave its sections: if it can now, it does. */
void realm_catch_up(struct thread *t);

#endif
