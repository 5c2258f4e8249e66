/* The rows of versions that come later: unused ones, and those of followers that have ended. */
#ifndef MVE_OUTSIDE_ROWS_H
#define MVE_OUTSIDE_ROWS_H

#include "engine/outside/monitor/monitor.h"

/* Spare rows behind those that there are, as many as fit. */
int rows_make(struct monitor *m);
/* The same in a session that runs, whose leader has the first. */
int rows_make_late(struct monitor *m);
bool version_unused(const struct version *v);
/* Nobody has it, and nothing is left of whom it was. */
bool row_is_free(const struct monitor *m, const struct version *v);
/* The one of that name, or any; NULL, and why not, and whether that goes by itself. */
struct version *row_find(struct monitor *m, const char *name, const char **why, bool *passes);
/* Its area as it was before its first process: 0 or a negative errno. */
int row_renew(struct version *v);
/*
 * It is the row of another version from here on, which has taken argv: `like` says what is
 * asked of it, and its name; NULL: `prefix` and a number.
 */
void row_take(struct version *v, const char *path, char **argv,
	      const struct follower_options *like, const char *prefix);
/* A copy of what a program is given, which row_take takes. */
char **row_words(char *const *words);

#endif
