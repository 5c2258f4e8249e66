/*
 * What becomes of requests that are taken back.  0, or an exit code after a message.
 */
#ifndef MVE_RUN_ROLLBACK_H
#define MVE_RUN_ROLLBACK_H

#include "engine/outside/monitor/options.h"

int reply_take(struct run_options *o, const char *path);
/* When all options have been read. */
int rollback_complete(struct run_options *o);

#endif
