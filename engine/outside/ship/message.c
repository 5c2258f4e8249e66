/* A message is believed as far as its checksum goes; what its bytes say is for frames.c. */
#include <stdio.h>
#include <string.h>

#include "engine/outside/bytes/crc32c.h"
#include "engine/outside/ship/message.h"

static uint32_t message_crc(const struct ship_message *m)
{
	return crc32c(crc32c(0, m, offsetof(struct ship_message, crc)), m + 1, m->size);
}

void message_seal(struct ship_message *m)
{
	m->magic = SHIP_MAGIC;
	m->version = SHIP_VERSION;
	m->log_version = LOG_VERSION;
	m->event_version = EVENT_VERSION;
	m->ring_version = RING_VERSION;
	m->crc = message_crc(m);
}

static const char *version_wrong(const struct ship_message *m)
{
	static char text[SHIP_WORDS];

	if (m->version == SHIP_VERSION && m->log_version == LOG_VERSION &&
	    m->event_version == EVENT_VERSION && m->ring_version == RING_VERSION)
		return NULL;
	snprintf(text, sizeof(text), "another version of mve ships it (format %u.%u.%u.%u, this "
		 "one takes %d.%d.%d.%d)", m->version, m->log_version, m->event_version,
		 m->ring_version, SHIP_VERSION, LOG_VERSION, EVENT_VERSION, RING_VERSION);
	return text;
}

const char *message_wrong(const void *bytes, size_t len)
{
	const struct ship_message *m = bytes;
	const char *wrong;

	if (len < sizeof(*m) || m->magic != SHIP_MAGIC)
		return "a message on the subject is not mve's";
	wrong = version_wrong(m);
	if (wrong)
		return wrong;
	if (m->size != len - sizeof(*m) || m->size > SHIP_PAYLOAD)
		return "a message is torn";
	return m->crc == message_crc(m) ? NULL : "a message is damaged";
}
