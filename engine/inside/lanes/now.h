/* What time it is to the inside itself. */
#ifndef MVE_INSIDE_NOW_H
#define MVE_INSIDE_NOW_H

#include <stdint.h>

uint64_t clock_ns(int clock);

/* Of what a thread of this process had of a processor. */
static inline int cpu_clock(int32_t tid)
{
	return (int)(~(uint32_t)tid << 3 | 6);
}

/* Of what a process had. */
static inline int process_clock(int32_t pid)
{
	return (int)(~(uint32_t)pid << 3 | 2);
}

#endif
