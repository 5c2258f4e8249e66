/*
 * What mve says to its user: one line, what failed, the object, the reason, and
 * a line with a hint.  Never to standard output, which is the server's.
 */
#ifndef MVE_OUTSIDE_SAY_H
#define MVE_OUTSIDE_SAY_H

#include <stdio.h>
#include <stdlib.h>

#include "engine/core/must.h"

enum exit_code {
	EXIT_OK = 0, EXIT_NO = 1, EXIT_USE = 2, EXIT_SYSTEM = 3, EXIT_BUG = 70,
	EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127,
};

/* "mve: " and the text; a hint line follows when `hint` is not NULL. */
void say_error(const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* From now on what nobody reads is lost: this is a monitor's loop. */
void say_never_waits(void);

/* What a MUST that fails says as its hint: who we are, how far we were, what is lost by it. */
void say_of_bugs(void (*what)(char *text, size_t size));

/* A line of the log, when MVE_LOG names the module (or "all"). */
void say_log(const char *module, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
