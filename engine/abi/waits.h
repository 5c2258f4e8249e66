/*
 * The waits of a version's threads: abi/waits.def has them, and here is all that the inside
 * knows of time, in 14 numbers.  Who looks and sleeps in turns sleeps longer each time.
 */
#ifndef MVE_ABI_WAITS_H
#define MVE_ABI_WAITS_H

#include <stdint.h>

#define WAIT_BRIEF_NS	1000000ull
#define WAIT_SHORT_NS	50000000ull
#define WAIT_MIDDLE_NS	200000000ull
#define WAIT_LONG_NS	2000000000ull

#define PAUSE_FIRST_NS	50000ull
#define PAUSE_IDLE_NS	2000000ull	/* where little hangs on how soon it is seen */
#define PAUSE_LAST_NS	10000000ull
#define PAUSE_WOKEN_NS	100000000ull	/* of one who is woken: who should do it may have died */
#define PAUSE_ASLEEP_NS	500000000ull	/* of one who sleeps in a call of the program's own */

#define DEFER_NS	5000000ull	/* of its time a thread may defer a signal (overdue.c) */

#define CLOCK_STEP_NS	1000ll	/* a clock that was asked once more has gone on by that much */

/* Of a sampled session (sample/scope.c). */
#define COST_MOST_NS	5000000	/* of what telling may cost, with auto, what may be saved up */
#define EVENT_NS	150	/* an event whose time is not taken, cache lines and all */
#define BETWEEN_NS	5000000000ull	/* so long none is told, for the sake of a newcomer */

#define SECOND_NS	1000000000ll	/* a unit */

enum wait_kind {
#define WAIT(name, ...) WAIT_##name,
#include "engine/abi/waits.def"
	WAITS
};

#define WAITS_ROOM	32	/* in the area */
_Static_assert(WAITS <= WAITS_ROOM, "each kind has its count");

/* Of all threads of the version. */
struct wait_count {
	uint64_t met;		/* waits that came to their limit */
	uint64_t longest_ns;	/* of all of the kind */
};

#endif
