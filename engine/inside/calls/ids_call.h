/* Calls that name processes or threads, in a version that took over. */
#ifndef MVE_INSIDE_IDS_CALL_H
#define MVE_INSIDE_IDS_CALL_H

#include "engine/abi/table.h"
#include "engine/inside/gate/thread.h"

long ids_call(struct thread *t, const struct call_desc *d, long nr);
long ids_both(struct thread *t, const struct call_desc *d, long nr);

#endif
