/* What the two files of stages know of each other. */
#ifndef MVE_OUTSIDE_STAGES_PARTS_H
#define MVE_OUTSIDE_STAGES_PARTS_H

#include "engine/outside/monitor/monitor.h"

void stage_event(struct monitor *m, enum stage_event e);
/* The leader's threads are asked to their points; and are to go on. */
void stops_ask(struct monitor *m, struct stages *s);
void stops_end(struct monitor *m, struct stages *s);
/* They are waited for; when all stand a twin is made. */
void stops_look(struct monitor *m, struct stages *s);

#endif
