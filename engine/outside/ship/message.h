/* Messages of a recording that is shipped: made and checked. */
#ifndef MVE_OUTSIDE_SHIP_MESSAGE_H
#define MVE_OUTSIDE_SHIP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/abi/ship.h"

/* Fills in what is the same in all of this build, and the checksum; the bytes stand behind it. */
void message_seal(struct ship_message *m);
/* What is wrong with one that came; NULL: nothing. */
const char *message_wrong(const void *bytes, size_t len);

#endif
