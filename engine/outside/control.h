/*
 * Speaking with a session's monitor.
 */
#ifndef MVE_OUTSIDE_CONTROL_H
#define MVE_OUTSIDE_CONTROL_H

#include <jansson.h>

#include "engine/outside/session.h"

/* Asks and gives the answer, or NULL when the monitor does not answer. */
json_t *control_ask(const struct session *s, const char *what);
/* The same with more than a word; takes the reference. */
json_t *control_ask_json(const struct session *s, json_t *ask);

#endif
