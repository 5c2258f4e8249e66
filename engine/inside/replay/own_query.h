/* What a follower asks, and its leader did not. */
#ifndef MVE_INSIDE_OWN_QUERY_H
#define MVE_INSIDE_OWN_QUERY_H

#include "engine/inside/gate/thread.h"

/* A query or a clock that the leader did not make. */
long own_query(struct thread *t, long nr);

#endif
