/* A connection to NATS, and the stream that has the subject. */
#ifndef MVE_SHIP_LINK_H
#define MVE_SHIP_LINK_H

#include <nats/nats.h>
#include <stdbool.h>

#include "engine/outside/ship/address.h"
#include "engine/ship/credentials.h"

struct link {
	struct ship_address address;
	struct credentials credentials;
	natsConnection *nats;
	jsCtx *js;
	char stream[256];
	unsigned next;		/* the server that is tried next */
	char why[SHIP_WORDS];	/* nothing came of it */
};

/* The servers and the subject; false: `why`. */
bool link_begin(struct link *l, const char *url);
/* To one of the servers, by turns; a connection that breaks is not mended but opened anew. */
bool link_open(struct link *l, jsPubAckHandler acked, void *ctx);
void link_close(struct link *l);
/* The stream that takes the subject; `make`: it is made if there is none. */
bool link_stream(struct link *l, bool make);
/* `why` is what the library says of it. */
bool link_failed(struct link *l, const char *what, natsStatus status);
/* Bytes of a message. */
size_t link_payload(const struct link *l);

#endif
