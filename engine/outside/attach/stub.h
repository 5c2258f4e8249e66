/*
 * Calls in the name of a program that runs.  Where we are killed in the middle of one the
 * program must go on as if nothing had been, so nothing of its own is written over: the call
 * stands in bytes that nobody has a use for, behind the end of the vDSO, and behind it code
 * that gives the thread its mask and its registers back and jumps to where it was.
 */
#ifndef MVE_OUTSIDE_STUB_H
#define MVE_OUTSIDE_STUB_H

#include <stdint.h>

#include "engine/outside/attach/crowd.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/remote.h"

/* Where it may stand in such a process; 0: nowhere. */
uint64_t stub_room(int memory, const struct maps *maps);

struct stub {
	struct crowd *crowd;	/* whose first thread makes the calls */
	uint64_t at;
	int memory;
};

/* Calls of the remote are made so from here on, until the end: what was there is there again. */
void stub_begin(struct stub *s, struct crowd *c, uint64_t at, int memory, struct remote *r);
void stub_end(struct stub *s);

#endif
