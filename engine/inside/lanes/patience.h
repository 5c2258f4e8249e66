/* How long is waited for what others are to do (abi/waits.def), and the count of it. */
#ifndef MVE_INSIDE_PATIENCE_H
#define MVE_INSIDE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/abi/waits.h"

uint64_t wait_limit(enum wait_kind kind);
/* A wait of the kind is over: so long it was, and whether its limit was met. */
void wait_note(enum wait_kind kind, uint64_t ns, bool met);

/*
 * Whether a wait was in vain.  Ten of a kind more than were of use: there are to be no more of
 * them.  WAITS: of none of the kinds (order_wait_for_awake).
 */
void wait_vain(enum wait_kind kind, bool vain);
bool wait_given_up(enum wait_kind kind);
/* So often in vain in the version's life, which an image that goes on does not forget. */
bool wait_met_often(enum wait_kind kind);

/* The next sleep between two looks. */
static inline uint64_t pause_longer(uint64_t ns)
{
	return ns * 2 < PAUSE_LAST_NS ? ns * 2 : PAUSE_LAST_NS;
}

/* A wait whose looks are steps in time, for what nobody wakes us. */
struct patience {
	enum wait_kind kind;
	uint64_t since, now;	/* 0: it has not slept yet */
	uint64_t more;		/* than the limit, for the time before does not count */
	uint64_t sleep;		/* the next one */
};

#define PATIENCE(k)	{ .kind = (k) }

/* Sleeps a step, or until who leads changes; false: the limit is met. */
bool patience_step(struct patience *p);
/* Its limit has been met for want of a processor: as long once more. */
void patience_go_on(struct patience *p);
/* What was waited for is so; true: or is given up. */
bool patience_end(const struct patience *p);

#endif
