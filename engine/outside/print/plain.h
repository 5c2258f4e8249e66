/*
 * Text that comes from programs, made fit to be shown to people: what a terminal would
 * obey instead of showing it (control characters, also those of 8 bits, and what turns the
 * direction of writing), and what is not UTF-8, becomes \xNN.
 *
 * All that mve prints of a session passes here: messages (say.c), answers of the monitor
 * and reports (json), names of programs.  What is printed with --json is escaped as JSON.
 */
#ifndef MVE_OUTSIDE_PLAIN_H
#define MVE_OUTSIDE_PLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The text in plain; ends of lines and tabs stay if `lines`.  Cut when it does not fit; the
 * length.
 */
size_t plain_text(const char *text, size_t len, bool lines, char *to, size_t size);
/* In place, for all strings of a value; the value. */
json_t *plain_json(json_t *j, bool lines);
/* The same for a name that is printed at once: good until the next but three. */
const char *plain(const char *text);

#endif
