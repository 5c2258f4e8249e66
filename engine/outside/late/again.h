/* When one that has ended comes again: later each time, and soon if it had lasted. */
#ifndef MVE_OUTSIDE_AGAIN_H
#define MVE_OUTSIDE_AGAIN_H

#include <stdint.h>

/* *ends: how often it has, since it lasted; since_ms: it was there; 0: it never was. */
uint64_t again_when(unsigned *ends, uint64_t since_ms);
/* What it comes to at most: till what was refused is asked again. */
uint64_t again_latest_ms(void);

#endif
