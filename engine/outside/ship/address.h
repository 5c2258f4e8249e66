/* Where a recording is shipped to: nats://HOST:PORT/SUBJECT. */
#ifndef MVE_OUTSIDE_SHIP_ADDRESS_H
#define MVE_OUTSIDE_SHIP_ADDRESS_H

#include <stdbool.h>

#include "engine/abi/ship.h"

#define ADDRESS_SERVERS	8

struct ship_address {
	char text[1024];			/* what the servers' names point into */
	const char *server[ADDRESS_SERVERS];	/* with their scheme */
	unsigned servers;			/* 0: those of the user's context */
	char subject[SHIP_SUBJECT_MAX + 1];
};

/* What is wrong with it; NULL: nothing. */
const char *address_parse(struct ship_address *a, const char *url);
/* The same of servers alone, as a context has them: HOST:PORT,HOST:PORT; false: too many. */
bool address_servers(struct ship_address *a, const char *scheme, const char *list);

#endif
