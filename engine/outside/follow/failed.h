/* mve itself has failed in a version. */
#ifndef MVE_OUTSIDE_FAILED_H
#define MVE_OUTSIDE_FAILED_H

#include "engine/outside/monitor/monitor.h"

/* Answers REQ_FAILED. */
int64_t failed_serve(struct version *v, const struct request *r);

#endif
