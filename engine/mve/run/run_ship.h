/* What mve run --ship asks for. */
#ifndef MVE_RUN_SHIP_H
#define MVE_RUN_SHIP_H

#include "engine/outside/monitor/options.h"

/* One of its options, or of mve follow --from. */
int ship_take(struct run_options *o, int opt, const char *text);
/* Where it is written first; 0, or an exit code behind a message. */
int ship_complete(struct run_options *o);

#endif
