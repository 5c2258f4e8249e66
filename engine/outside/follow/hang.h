/* A leader that hangs: --hang. */
#ifndef MVE_OUTSIDE_HANG_H
#define MVE_OUTSIDE_HANG_H

#include "engine/outside/monitor/monitor.h"

void hang_look(struct monitor *m);

#endif
