/* A follower that is its leader's own program: what makes that differ from itself. */
#ifndef MVE_OUTSIDE_ITSELF_H
#define MVE_OUTSIDE_ITSELF_H

#include "engine/outside/monitor/monitor.h"

/* The same file with the same words. */
bool itself_is(const struct version *v);
/* What is known of why it differs; valid until the next call. */
const char *itself_why(const struct version *v, unsigned tried);

#endif
