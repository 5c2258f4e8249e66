/* Which way a call takes: the short, the told or the long one. */
#ifndef MVE_INSIDE_WAYS_H
#define MVE_INSIDE_WAYS_H

#include "engine/inside/gate/thread.h"

/* Each call gets its slot; each slot its way. */
void slots_fill(void);
enum way {
	WAY_SHORT,	/* in place */
	WAY_LONG,	/* by dispatch() */
	WAY_TOLD,	/* in place, and then written down, where a leader's thread makes it */
	WAY_ASKED,	/* the same, but looked at beforehand, too */
};
void way_set(unsigned slot, enum way way);
/* Time ends its calls: the gate notes when they come. */
void way_lasting(unsigned slot);
/*
 * Where nobody follows, calls that are nothing to the leader itself take the short way, whatever
 * theirs is: which may; and that they do from here on, or no longer.
 */
void way_hushable(unsigned slot, bool may);
void ways_hush(bool hush);
bool ways_are_hushed(void);
/* Nobody follows, and nobody is about to: record/quiet.c sets it. */
extern uint8_t quiet_on;
/* What is told in place goes the long way from here on. */
void ways_untold(void);

/*
 * What a row has of its own on the told and the asked way, one call for each slot: the
 * frame's call was made in place, in a process with one thread; the same where there may be
 * others, or was a version before (tell_off); and the asking.
 */
typedef void row_told(long result);
typedef int row_ask(struct thread *t);
struct row_calls {
	row_told *told[SLOT_CALLS], *asked[SLOT_CALLS];
	row_ask *ask[SLOT_CALLS];	/* enum asked */
	bool threads[SLOT_CALLS];	/* it asks only where there are threads */
};
void way_calls(unsigned slot, row_told *told, row_told *asked, row_ask *ask, bool threads);

/* What the gate does with a call that was looked at beforehand. */
enum asked {
	ASKED_LONG = -1,	/* by dispatch() */
	ASKED_MAKE,		/* it makes it in place */
};

/* Why calls on the told way are looked at beforehand, as bits; */
enum tell_off {
	/* The process has begun a second one, since it was forked: some of them, row_calls. */
	TELL_THREADS = TELLS_THREADS,
	TELL_FOLLOWED = 2,	/* it was a follower before */
	/* and why none of them goes it. */
	TELL_PRIVATE = 4,	/* it has a private file open */
	TELL_RUNTIME = 8,	/* a sanitizer's, whose calls are its own */
};
#define TELL_NONE	(TELL_PRIVATE | TELL_RUNTIME)
extern uint32_t tell_off;
/* The rows have their calls. */
void tell_begin(void);
void tell_stop(enum tell_off why);
void tell_go(enum tell_off why);
/* A call that is made in place, or is about to be, is at this address. */
bool in_short_call(uint64_t rip);

#endif
