/* A copy of the leader, made while it stands. */
#ifndef MVE_OUTSIDE_TWIN_COPY_H
#define MVE_OUTSIDE_TWIN_COPY_H

#include "engine/outside/monitor/monitor.h"

/* The row's cursors and conduct, of which `like` is asked, are put to nothing. */
void twin_prepare(struct version *v, const struct follower_options *like);
/*
 * In this row, once it is prepared, of which `like` is asked; how long the leader stood is added.
 * 0; -EAGAIN: not now; -E2BIG: it shares too much memory; or another negative errno.
 */
int twin_copy(struct version *v, const struct follower_options *like, uint64_t *stood_us);
/* Of the last -EAGAIN. */
const char *twin_copy_why(void);

#endif
