/* The requests of the inside. */
#ifndef MVE_OUTSIDE_SERVE_H
#define MVE_OUTSIDE_SERVE_H

#include "engine/outside/monitor/monitor.h"

/* Whether the version may make us say one more thing: a broken one would for ever. */
bool version_may_say(struct version *v);
void serve_requests(struct monitor *m);

#endif
