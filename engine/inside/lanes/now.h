/* What time it is to the inside itself. */
#ifndef MVE_INSIDE_NOW_H
#define MVE_INSIDE_NOW_H

#include <stdint.h>

uint64_t clock_ns(int clock);

#endif
