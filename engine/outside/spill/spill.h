/* mve run --when-full spill: a ring that is larger than its memory. */
#ifndef MVE_OUTSIDE_SPILL_H
#define MVE_OUTSIDE_SPILL_H

#include "engine/outside/monitor/monitor.h"

/* What the spiller has done; it writes there, the monitor reads. */
struct spilled {
	uint64_t out;		/* chunks that have no memory now */
	uint64_t written, read;	/* chunks, in all */
	uint64_t memory, most;	/* chunks that have memory; the most ever */
};

/* Before anything runs: what the user has asked for can be had; 0 or an exit code. */
int spill_open(struct monitor *m);
/* Streams are to be made: whether a disk allows it, and how much. */
void spill_choose(struct monitor *m);
/* So many chunks of the ring have no memory; 0: nothing is spilled. */
uint32_t spill_chunks(void);
const char *spill_folder(void);
/* NULL: it is spilled, or nobody wants it. */
const char *spill_why_not(void);
/* The streams are made: it begins. */
void spill_begin(struct monitor *m);
/* It has said something, or has ended. */
void spill_serve(struct monitor *m);
bool spill_poll(struct monitor *m);
/* The session is over. */
void spill_end(struct monitor *m);
/* The version's section begins a stream: what its chunks held before needs no memory. */
void spill_forget(const struct monitor *m, uint32_t realm, uint32_t version);
/* NULL: there is none, or it is over. */
const struct spilled *spill_seen(void);

#endif
