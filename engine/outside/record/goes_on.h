/* A recorded session whose leader is another one by now. */
#ifndef MVE_OUTSIDE_GOES_ON_H
#define MVE_OUTSIDE_GOES_ON_H

#include "engine/outside/monitor/monitor.h"

/* Now and then: where the recording has ended for that, another may begin. */
void record_goes_on_look(struct monitor *m);

#endif
