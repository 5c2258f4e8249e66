/*
 * Rules files, compiled and ready for a follower's area.
 */
#ifndef MVE_OUTSIDE_RULES_LOAD_H
#define MVE_OUTSIDE_RULES_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/abi/brief.h"

/*
 * The object of a rules file, open for reading and sealed: compiled by rulec unless the
 * cache has it; an object is taken as it is.  0, or an exit code after a message (rulec's
 * own, if the rules are at fault).
 */
int rules_compile(const char *file, int *fd);

/* It is what rules_compile() gives: it cannot change, and to read it is no wait. */
bool rules_sealed(int fd);

/* Checks an object and lays it out as it will lie in memory; NULL and *why. */
struct rules_bank *rules_read(int fd, const char **why);

/* Another one, by malloc; NULL: there is no memory. */
struct rules_bank *rules_copy(const struct rules_bank *rules);

/* Gives it to all processes of the version, now or when they begin. */
void rules_put(struct brief *b, const struct rules_bank *rules);

#endif
