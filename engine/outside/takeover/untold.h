/* Signals that had come to the old leader, and were not told. */
#ifndef MVE_OUTSIDE_UNTOLD_H
#define MVE_OUTSIDE_UNTOLD_H

#include "engine/outside/monitor/monitor.h"

/* The old leader stands; and what the process that takes from this one is to hear. */
void untold_look(struct monitor *m);
/* The next of them, from row *at on; how many. */
unsigned untold_take(struct monitor *m, pid_t twin, unsigned *at, struct taken_signal *row,
		     unsigned room);

#endif
