/* Which connections followers are told of. */
#ifndef MVE_INSIDE_SCOPE_H
#define MVE_INSIDE_SCOPE_H

#include "engine/core/walk.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"

/* The first connections have come and gone. */
bool scope_start_over(void);
/* A stateless server, whose followers hear of some connections only */
void scope_prepare(void);
static inline bool is_stateless(void)
{
	return streams.conduct->sampling.stateless;
}
/* Followers know this descriptor, and whether connections come from it. */
bool scope_knows(int32_t fd, bool *listens);
/* What of a call matters here, the same at each call of a row. */
struct scope_row {
	uint8_t fds;		/* arguments that are descriptors, as bits */
	uint8_t what;		/* enum scope_what */
};
enum scope_what {
	SCOPE_ACCEPTS	= 1 << 0,
	SCOPE_WAITS	= 1 << 1,	/* for any connection */
	SCOPE_POLLS	= 1 << 2,	/* by epoll */
	SCOPE_SETS	= 1 << 3,	/* what epoll waits for */
	SCOPE_BEARS	= 1 << 4,	/* descriptors come, go or change */
	SCOPE_EVERYBODYS = 1 << 5,	/* told whatever is going on */
	SCOPE_GIVEN	= 1 << 6,	/* descriptors, by it */
};
struct scope_row scope_row(const struct call_desc *d);
/* The call is about to be made: do followers hear of it? */
bool scope_enter(struct thread *t, const struct walk *w, struct scope_row row);
/* It was made; false: of an accept, whose connection they do not hear of. */
bool scope_leave(struct thread *t, const struct walk *w, bool told, struct scope_row row);
/* What kept.def says of them. */
void scope_gone(struct thread *t, struct numbers n);
/* A call that is not told may be about a connection that is: then who follows is dropped. */
void scope_stray(const struct thread *t, const uint64_t *args, uint8_t fds);
/* A follower is told from here on: it knows what there was at the start, and what comes. */
void scope_renew(bool from_start, bool alone);
/* What telling of a call costs: when that is begun, if it is worth a look; and what it was. */
uint64_t scope_cost_begin(const struct walk *w);
void scope_cost_end(uint64_t begun);
/* No descriptor is open that only those know who follow now; `wanted`: see to it. */
bool scope_between(bool wanted);

#endif
