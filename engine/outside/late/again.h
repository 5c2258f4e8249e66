/* When one that has ended comes again: later each time, and soon if it had lasted. */
#ifndef MVE_OUTSIDE_AGAIN_H
#define MVE_OUTSIDE_AGAIN_H

#include <stdbool.h>
#include <stdint.h>

#define AGAIN_MS	500	/* before one comes again; twice as long each time */

/*
 * *ends: how often it has, since it lasted; since_ms: it was there; 0: it never was;
 * first_ms: what it waits at first.
 */
uint64_t again_when(unsigned *ends, uint64_t since_ms, unsigned first_ms);
/* What it comes to at most: till what was refused is asked again. */
uint64_t again_latest_ms(void);
/*
 * One could not be made, for the *tries'th time: when it is tried again; soon: what is against
 * it passes, and costs the leader nothing.  True: it seems to last, which is to be said, once.
 */
bool again_refused(unsigned *tries, bool soon, uint64_t *when_ms);

#endif
