/*
 * A connection is opened to one server, and used until anything fails: then it is closed, and
 * another is opened, where the sender or the receiver begins anew at what is acknowledged.  So the
 * library's own mending is off, and there is one way for all that can break.
 */
#include <stdio.h>
#include <string.h>

#include "engine/ship/link.h"

#define CONNECT_MS	5000
#define ASK_MS		10000	/* an answer of the server's */
#define PING_MS		5000
#define PINGS_OUT	2
#define MESSAGE_SPARE	4096	/* of a message, for NATS' own words */

/* Where the library's words say less, or nothing that a user knows. */
static const struct { natsStatus status; const char *text; } words[] = {
	{ NATS_NO_SERVER, "nobody answers at that address" },
	{ NATS_IO_ERROR, "the connection was broken" },
	{ NATS_CONNECTION_CLOSED, "the connection is closed" },
	{ NATS_CONNECTION_DISCONNECTED, "the connection was broken" },
	{ NATS_STALE_CONNECTION, "the server answers no more" },
	{ NATS_CONNECTION_AUTH_FAILED, "the server knows neither name nor password, or key" },
	{ NATS_NOT_PERMITTED, "the server does not allow it" },
	{ NATS_SECURE_CONNECTION_WANTED, "the server has no TLS" },
	{ NATS_SECURE_CONNECTION_REQUIRED, "the server wants TLS: tls://..." },
	{ NATS_NO_RESPONDERS, "the server has no JetStream" },
	{ NATS_TIMEOUT, "no answer in time" },
};

static const char *status_text(natsStatus status)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].status == status)
			return words[i].text;
	return natsStatus_GetText(status);
}

/* What the library adds, of certificates and streams: without the place in its source. */
static const char *detail(natsStatus status)
{
	const char *more = nats_GetLastError(NULL), *text = more;

	if (more && *more == '(' && (text = strstr(more, "): ")))
		more = text + 3;
	return !more || !*more || status_text(status) != natsStatus_GetText(status) ? NULL : more;
}

bool link_failed(struct link *l, const char *what, natsStatus status)
{
	const char *more = detail(status);

	snprintf(l->why, sizeof(l->why), "%s: %s%s%s", what, status_text(status),
		 more ? ": " : "", more ? more : "");
	return false;
}

bool link_begin(struct link *l, const char *url)
{
	const char *wrong = address_parse(&l->address, url);

	if (wrong) {
		snprintf(l->why, sizeof(l->why), "%s", wrong);
		return false;
	}
	if (!credentials_read(&l->credentials, !l->address.servers, l->why, sizeof(l->why)))
		return false;
	if (!l->address.servers && !(l->credentials.url &&
				     address_servers(&l->address, "nats", l->credentials.url)))
		snprintf(l->why, sizeof(l->why), "no server is named, and no NATS context has one");
	return l->address.servers;
}

/* The certificate must be the host's that was asked for. */
static natsStatus host_set(natsOptions *o, const char *server)
{
	const char *host = strstr(server, "://") + 3, *at = strrchr(host, '@');
	char name[256];

	host = at ? at + 1 : host;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, ":/"), host);
	return natsOptions_SetExpectedHostname(o, name);
}

static natsStatus options_set(const struct link *l, natsOptions *o, const char *server)
{
	natsStatus s = natsOptions_SetURL(o, server);

	if (s == NATS_OK)
		s = host_set(o, server);
	if (s == NATS_OK)
		s = natsOptions_SetName(o, "mve");
	if (s == NATS_OK)
		s = natsOptions_SetTimeout(o, CONNECT_MS);
	if (s == NATS_OK)
		s = natsOptions_SetAllowReconnect(o, false);
	if (s == NATS_OK)
		s = natsOptions_SetPingInterval(o, PING_MS);
	if (s == NATS_OK)
		s = natsOptions_SetMaxPingsOut(o, PINGS_OUT);
	return s == NATS_OK ? credentials_set(&l->credentials, o) : s;
}

static natsStatus js_open(struct link *l, jsPubAckHandler acked, void *ctx)
{
	jsOptions o;

	jsOptions_Init(&o);
	o.Prefix = l->credentials.api;
	o.Domain = l->credentials.domain;
	o.Wait = ASK_MS;
	o.PublishAsync.AckHandler = acked;
	o.PublishAsync.AckHandlerClosure = ctx;
	return natsConnection_JetStream(&l->js, l->nats, &o);
}

bool link_open(struct link *l, jsPubAckHandler acked, void *ctx)
{
	const char *server = l->address.server[l->next++ % l->address.servers];
	natsOptions *o = NULL;
	natsStatus s = natsOptions_Create(&o);

	if (s == NATS_OK)
		s = options_set(l, o, server);
	if (s == NATS_OK)
		s = natsConnection_Connect(&l->nats, o);
	if (s == NATS_OK)
		s = js_open(l, acked, ctx);
	if (s != NATS_OK)
		link_failed(l, "cannot connect", s);
	natsOptions_Destroy(o);
	if (s != NATS_OK)
		link_close(l);
	return s == NATS_OK;
}

void link_close(struct link *l)
{
	/* The connection first: nothing is called for the context behind that. */
	if (l->nats)
		natsConnection_Close(l->nats);
	jsCtx_Destroy(l->js);
	natsConnection_Destroy(l->nats);
	l->js = NULL;
	l->nats = NULL;
}

size_t link_payload(const struct link *l)
{
	int64_t most = natsConnection_GetMaxPayload(l->nats) - MESSAGE_SPARE;
	int64_t ours = SHIP_PAYLOAD + sizeof(struct ship_message);

	return (size_t)(most < ours && most > 0 ? most : ours);
}

/* A stream's name has no dots. */
static bool stream_make(struct link *l)
{
	const char *subjects[] = { l->address.subject };
	jsStreamConfig config;
	jsErrCode error = 0;
	natsStatus s;

	jsStreamConfig_Init(&config);
	snprintf(l->stream, sizeof(l->stream), "%s", l->address.subject);
	for (char *at = l->stream; *at; at++)
		*at = *at == '.' ? '_' : *at;
	config.Name = l->stream;
	config.Subjects = subjects;
	config.SubjectsLen = 1;
	s = js_AddStream(NULL, l->js, &config, NULL, &error);
	return s == NATS_OK || link_failed(l, "cannot make a stream for the subject", s);
}

bool link_stream(struct link *l, bool make)
{
	jsStreamNamesList *list = NULL;
	jsErrCode error = 0;
	jsOptions o;
	natsStatus s;

	l->stream[0] = 0;
	jsOptions_Init(&o);
	o.Stream.Info.SubjectsFilter = l->address.subject;
	s = js_StreamNames(&list, l->js, &o, &error);
	if (s == NATS_OK && list->Count)
		snprintf(l->stream, sizeof(l->stream), "%s", list->List[0]);
	jsStreamNamesList_Destroy(list);
	if (s != NATS_OK && s != NATS_NOT_FOUND)
		return link_failed(l, "cannot ask for the stream", s);
	if (l->stream[0])
		return true;
	if (make)
		return stream_make(l);
	snprintf(l->why, sizeof(l->why), "no stream has the subject %s yet", l->address.subject);
	return false;
}
