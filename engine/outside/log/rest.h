/* A replay that has come to rest before it has read all that there is. */
#ifndef MVE_OUTSIDE_LOG_REST_H
#define MVE_OUTSIDE_LOG_REST_H

#include "engine/outside/monitor/monitor.h"

/* Called now and then; true: the follower stands for what is missing, which is no verdict. */
bool rest_look(struct monitor *m, const struct version *v);
/* Cells that nobody waits for, as what is missing is behind them: of no replay none. */
uint64_t rest_cells(const struct monitor *m);

#endif
