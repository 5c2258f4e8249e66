/* What attach.c and the files beside it share. */
#ifndef MVE_OUTSIDE_ATTACH_PARTS_H
#define MVE_OUTSIDE_ATTACH_PARTS_H

#include "engine/outside/attach/guest.h"

/* Places of the program where a thread is, or may come back to, in order; to be freed. */
struct places {
	uint64_t *at;
	size_t n, room;
};

/* 0 or a negative errno. */
int places_find(const struct guest *g, const struct maps *maps, struct places *p);

#endif
