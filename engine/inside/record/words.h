/* What a version that fails does last: words for people. */
#ifndef MVE_INSIDE_WORDS_H
#define MVE_INSIDE_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/abi/event.h"

#define WORDS_MAX	20000	/* events that are looked at */
#define OPENED_FDS	1024

/* What is left of a lane, as far as it was looked at; numbers of files that it opens. */
struct words {
	uint64_t opened[OPENED_FDS / 64];
};

#define WORDS_NONE	{ { 0 } }

/*
 * Words for people, in files, signals, and what changes the caller alone, who is gone;
 * nothing that a client has seen or sent.  Events come in their order.
 */
bool words_hold(struct words *s, const struct event *e);

#endif
