/* Descriptors by which threads of one process speak to each other. */
#ifndef MVE_INSIDE_INNER_H
#define MVE_INSIDE_INNER_H

#include "engine/core/walk.h"

bool inner_is(long fd);
bool inner_is_bell(long fd);
/* A call with the trait INNER was made: these are. */
void inner_made(const struct walk *w);

#endif
