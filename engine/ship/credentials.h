/* Who we are to NATS: the user's context, and the environment. */
#ifndef MVE_SHIP_CREDENTIALS_H
#define MVE_SHIP_CREDENTIALS_H

#include <jansson.h>
#include <nats/nats.h>
#include <stdbool.h>
#include <stddef.h>

struct credentials {
#define CREDENTIAL(field, ...) const char *field;
#define REFUSED(...)
#include "engine/ship/credentials.def"
#undef CREDENTIAL
#undef REFUSED
	json_t *context;	/* what they point into; or NULL */
};

/*
 * From $NATS_CONTEXT, or if `selected` from the context that is chosen, if any is; false: `why`.
 */
bool credentials_read(struct credentials *c, bool selected, char *why, size_t size);
natsStatus credentials_set(const struct credentials *c, natsOptions *options);

#endif
