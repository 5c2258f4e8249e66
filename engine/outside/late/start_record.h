/* What the leader's start told, kept for followers that come late. */
#ifndef MVE_OUTSIDE_START_RECORD_H
#define MVE_OUTSIDE_START_RECORD_H

#include "engine/outside/monitor/monitor.h"

void start_record_begin(struct monitor *m);
void start_record_look(struct monitor *m);

#endif
