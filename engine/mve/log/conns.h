/*
 * The connections of a recording: which of them a call is about, and what went over them.  What
 * descriptors lead to is followed through calls that make, copy and close them, forks and execs.
 */
#ifndef MVE_LOG_CONNS_H
#define MVE_LOG_CONNS_H

#include "engine/outside/log/events.h"
#include "engine/outside/report/view.h"

/* Of a socket; family 0: not known.  Of a Unix socket no more is kept than that it is one. */
struct address {
	uint16_t family, port;	/* of the host's order */
	uint8_t ip[16];
};

struct conn {
	uint64_t number;	/* from 1, as they came */
	struct address own, peer;
	int32_t pid;		/* of who accepted or made it */
	bool came;		/* it was accepted; else the server has made it */
	bool datagrams;		/* a socket of them: peers may be many */
	bool ended;
	uint64_t began_ns, ended_ns;
	uint64_t taken, given;	/* bytes */
	void *user;
};

/* What went over one in a call; `have` of its `len` bytes are in the recording. */
struct conn_bytes {
	struct conn *conn;
	const struct address *peer;
	bool given;		/* by the server; else taken from its peer */
	const uint8_t *bytes;
	uint64_t have, len;
	uint64_t time_ns;
};

/* What is not there is not called. */
struct conns_user {
	void *ctx;
	void (*moved)(void *ctx, const struct conn_bytes *b);
	/* Its last byte is read. */
	void (*peer_ended)(void *ctx, struct conn *c, uint64_t time_ns);
	void (*ended)(void *ctx, struct conn *c);	/* its last descriptor is closed; or not */
};

struct conns *conns_new(const struct conns_user *user);
/* The connection that the event is about, or NULL; `over` as events_ordered says it. */
struct conn *conns_take(struct conns *all, const struct told *t, bool over);
/* Those that are still open are ended as of then. */
void conns_free(struct conns *all, uint64_t time_ns);

/* False: the server has not asked for it. */
bool address_known(const struct address *a);
/* "127.0.0.1:80", "[::1]:80", "unix", "unknown", "?". */
#define ADDRESS_TEXT	64
const char *address_text(const struct address *a, char text[ADDRESS_TEXT]);

#endif
