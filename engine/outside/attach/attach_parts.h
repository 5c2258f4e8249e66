/* What attach.c and the files beside it share. */
#ifndef MVE_OUTSIDE_ATTACH_PARTS_H
#define MVE_OUTSIDE_ATTACH_PARTS_H

#include <stdio.h>

#include "engine/outside/attach/attach.h"
#include "engine/outside/attach/guest.h"

static inline bool attach_refuse(struct attach_done *done, const char *why, const char *hint)
{
	snprintf(done->why, sizeof(done->why), "%s", why);
	done->hint = hint;
	return false;
}

/*
 * Limit (programs): processes of a server that mve attach comes to. Beyond: refused.
 */
#define GUESTS_MAX	4096

/* All processes of a server. */
struct guests {
	int (*more)(struct guests *g);	/* adds those that are not known yet */
	struct version *version;
	unsigned n;
	struct guest guest[GUESTS_MAX];
};

/* If it is not known, and has not ended; 0 or a negative errno. */
int guest_add(struct guests *g, pid_t pid);
/* `more`: children of those that are known, and theirs. */
int guests_children(struct guests *g);
/* All stand, also those that come meanwhile; or a negative errno, and all go on. */
int guests_stop(struct guests *g, uint64_t until_us);
void guests_go(struct guests *g);

/* One that stands, as it was begun: all is the program's again. */
int guest_leave(struct guest *g);

/* Places of the program where a thread is, or may come back to, in order; to be freed. */
struct places {
	uint64_t *at;
	size_t n, room;
};

/* 0 or a negative errno. */
int places_find(const struct guest *g, const struct maps *maps, struct places *p);

#endif
