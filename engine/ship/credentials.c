/*
 * A context is a JSON file in the user's configuration ($XDG_CONFIG_HOME/nats/context/NAME.json),
 * written by NATS' own command; context.txt beside the folder names the one that is chosen.  No
 * password stands on our command line.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ship/credentials.h"

#define CREDENTIAL(field, variable, key) { variable, key, offsetof(struct credentials, field) },
#define REFUSED(...)
static const struct row {
	const char *variable, *key;
	size_t at;
} rows[] = {
#include "engine/ship/credentials.def"
};
#undef CREDENTIAL
#undef REFUSED

#define CREDENTIAL(...)
#define REFUSED(key) key,
static const char *const refused[] = {
#include "engine/ship/credentials.def"
};
#undef CREDENTIAL
#undef REFUSED

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void config_path(char *path, size_t size, const char *name, const char *end)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (base && *base)
		snprintf(path, size, "%s/nats/%s%s", base, name, end);
	else
		snprintf(path, size, "%s/.config/nats/%s%s", home ? home : "", name, end);
}

/* The one that is chosen; or "". */
static void chosen_read(char *name, size_t size)
{
	char path[PATH_MAX];
	FILE *f;

	config_path(path, sizeof(path), "context.txt", "");
	f = fopen(path, "re");
	if (!f || !fgets(name, (int)size, f))
		name[0] = 0;
	name[strcspn(name, " \t\r\n")] = 0;
	if (f)
		fclose(f);
}

static bool context_load(struct credentials *c, const char *name, char *why, size_t size)
{
	char path[PATH_MAX], part[256];
	json_error_t error;
	const char *text;

	snprintf(part, sizeof(part), "context/%s", name);
	config_path(path, sizeof(path), part, ".json");
	c->context = strchr(name, '/') ? NULL : json_load_file(path, 0, &error);
	if (!c->context)
		snprintf(why, size, "the NATS context %s cannot be read: %s", name,
			 strchr(name, '/') ? "not a name" : error.text);
	for (size_t i = 0; c->context && i < COUNT(refused); i++) {
		text = json_string_value(json_object_get(c->context, refused[i]));
		if (!text || !*text)
			continue;
		snprintf(why, size, "the NATS context %s has %s, which mve cannot do", name,
			 refused[i]);
		return false;
	}
	return c->context;
}

static void row_take(struct credentials *c, const struct row *row)
{
	const char *text = getenv(row->variable);

	if (!text || !*text)
		text = json_string_value(json_object_get(c->context, row->key));
	*(const char **)((char *)c + row->at) = text && *text ? text : NULL;
}

bool credentials_read(struct credentials *c, bool selected, char *why, size_t size)
{
	const char *named = getenv("NATS_CONTEXT");
	char name[128] = "";

	*c = (struct credentials){ 0 };
	if (named && *named)
		snprintf(name, sizeof(name), "%s", named);
	else if (selected)
		chosen_read(name, sizeof(name));
	if (*name && !context_load(c, name, why, size))
		return false;
	for (size_t i = 0; i < COUNT(rows); i++)
		row_take(c, &rows[i]);
	return true;
}

static natsStatus secure_set(const struct credentials *c, natsOptions *o)
{
	natsStatus s = NATS_OK;

	if (c->ca || c->cert)
		s = natsOptions_SetSecure(o, true);
	if (s == NATS_OK && c->ca)
		s = natsOptions_LoadCATrustedCertificates(o, c->ca);
	if (s == NATS_OK && c->cert)
		s = natsOptions_LoadCertificatesChain(o, c->cert, c->key);
	return s;
}

natsStatus credentials_set(const struct credentials *c, natsOptions *o)
{
	natsStatus s = secure_set(c, o);

	if (s == NATS_OK && c->user)
		s = natsOptions_SetUserInfo(o, c->user, c->password ? c->password : "");
	if (s == NATS_OK && c->token)
		s = natsOptions_SetToken(o, c->token);
	if (s == NATS_OK && c->creds)
		s = natsOptions_SetUserCredentialsFromFiles(o, c->creds, NULL);
	if (s == NATS_OK && c->inbox)
		s = natsOptions_SetCustomInboxPrefix(o, c->inbox);
	return s;
}
