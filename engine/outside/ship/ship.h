/* mve run --ship: what is recorded goes to another machine as well. */
#ifndef MVE_OUTSIDE_SHIP_SHIP_H
#define MVE_OUTSIDE_SHIP_SHIP_H

#include <jansson.h>

#include "engine/outside/monitor/monitor.h"

#define SHIP_SPOOL	(1ull << 30)

/* The recording's folder is open, nothing runs yet; 0 or an exit code. */
int ship_open(struct monitor *m);
/* The recorder has begun. */
void ship_begin(struct monitor *m);
/* mve-ship has said something, or has ended. */
void ship_serve(struct monitor *m);
bool ship_poll(struct monitor *m);
/* One that was lost is started again. */
void ship_look(struct monitor *m);
/* The recorder has ended: what is left is sent, for as long as that gets on. */
void ship_end(struct monitor *m);
json_t *ship_json(void);

#endif
