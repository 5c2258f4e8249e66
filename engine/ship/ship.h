/*
 * mve-ship: the process that speaks with NATS for a monitor.  It has the page, the folder and the
 * socket that it was started with (abi/ship.h), and says in words what has become of it.
 */
#ifndef MVE_SHIP_SHIP_H
#define MVE_SHIP_SHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/abi/ship.h"

struct ship_page *page_map(void);
/* To the monitor, unless it was the last that was said. */
void state_say(enum ship_state state, const char *words);
/* The monitor has nothing more to say, or is gone. */
bool monitor_over(void);
/* For so long; longer each time, up to most: *ms is the next pause. */
void pause_grow(unsigned *ms, unsigned most);

/* The segments of the folder go to the subject, until the recording is over. */
int send_all(const char *url, struct ship_page *page);
/* What is on the subject comes into the folder, until the recording is over. */
int receive_all(const char *url, struct ship_page *page);

#endif
