/* Spares: twins of the leader that are kept, whatever becomes of them (--spare). */
#ifndef MVE_OUTSIDE_SPARES_H
#define MVE_OUTSIDE_SPARES_H

#include "engine/outside/monitor/monitor.h"

/* One is made where one is missing; after some time, if that has not lasted. */
void spares_look(struct monitor *m);
/* For mve status; NULL: none are wanted. */
json_t *spares_json(const struct monitor *m);

#endif
