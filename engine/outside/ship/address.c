/* Addresses: one scheme for all servers, or each has its own. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/outside/ship/address.h"

static bool is_scheme(const char *url, const char *scheme, size_t len)
{
	return !strncmp(url, scheme, len) && !strncmp(url + len, "://", 3);
}

/* Words between dots, none empty; what has a meaning of its own is not in them. */
static bool subject_ok(const char *s)
{
	char before = '.';

	if (s[0] == '$' || strlen(s) > SHIP_SUBJECT_MAX)
		return false;
	for (; *s; before = *s++)
		if (!isalnum((unsigned char)*s) && !strchr("-_", *s) &&
		    (*s != '.' || before == '.'))
			return false;
	return before != '.';
}

/* A number where one stands; the last colon of an address in brackets is in them. */
static bool port_ok(const char *server)
{
	const char *host = strstr(server, "://") + 3, *at = strrchr(host, '@');
	const char *colon = strrchr(at ? at : host, ':');
	unsigned long port;
	char *end;

	if (!colon || strchr(colon, ']'))
		return true;
	port = strtoul(colon + 1, &end, 10);
	return isdigit((unsigned char)colon[1]) && !*end && port && port <= UINT16_MAX;
}

bool address_servers(struct ship_address *a, const char *scheme, const char *list)
{
	char *at = a->text, *end = a->text + sizeof(a->text);

	a->servers = 0;
	while (*list) {
		size_t len = strcspn(list, ",");
		const char *own = strstr(list, "://");
		bool named = own && own < list + len;
		int n = snprintf(at, (size_t)(end - at), "%s%s%.*s", named ? "" : scheme,
				 named ? "" : "://", (int)len, list);

		if (!len || n >= end - at || a->servers == ADDRESS_SERVERS)
			return false;
		a->server[a->servers++] = at;
		at += n + 1;
		list += len + (list[len] == ',');
	}
	return true;
}

const char *address_parse(struct ship_address *a, const char *url)
{
	const char *scheme = is_scheme(url, "nats", 4) ? "nats" :
			     is_scheme(url, "tls", 3) ? "tls" : NULL;
	const char *hosts = scheme ? url + strlen(scheme) + 3 : NULL;
	const char *slash = hosts ? strrchr(hosts, '/') : NULL;
	char list[sizeof(a->text)];

	*a = (struct ship_address){ 0 };
	if (!slash)
		return "it is not nats://HOST:PORT/SUBJECT";
	if (!subject_ok(slash + 1))
		return "its subject must be words of letters, digits, - and _, between dots";
	snprintf(list, sizeof(list), "%.*s", (int)(slash - hosts), hosts);
	if (slash - hosts >= (long)sizeof(list) || !address_servers(a, scheme, list))
		return "it has too many servers";
	for (unsigned i = 0; i < a->servers; i++)
		if (!port_ok(a->server[i]))
			return "its port must be a number, 1 to 65535";
	strcpy(a->subject, slash + 1);
	return NULL;
}
