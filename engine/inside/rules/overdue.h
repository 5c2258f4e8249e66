/* A deferred signal does not wait for ever. */
#ifndef MVE_INSIDE_OVERDUE_H
#define MVE_INSIDE_OVERDUE_H

#include "engine/inside/gate/thread.h"

bool overdue_begin(struct thread *t);
bool overdue_again(struct thread *t);
void overdue_end(struct thread *t);
void overdue_forget(struct thread *t);

#endif
