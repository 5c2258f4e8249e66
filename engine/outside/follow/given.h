/* Whether a version had the time that it was given, on a machine that others use, too. */
#ifndef MVE_OUTSIDE_GIVEN_H
#define MVE_OUTSIDE_GIVEN_H

#include <stdbool.h>
#include <stdint.h>

#define GIVEN_LOOK_US	10000
#define GIVEN_MOST_US	5000000	/* by the clock: clients wait, and the monitor's other users */
#define GIVEN_ENDING_US	60000000 /* the same where nobody waits but for the session's end */

struct monitor;
struct version;

/* What a version had of the time that it is given. */
struct given {
	const struct version *v;
	uint64_t began_us, looked_us, cpu_us, had_us, limit_us, most_us;
	uint64_t queued_us;	/* that we ourselves have waited for a processor, by then */
	bool over;	/* it was, when given_past() was asked */
};

void given_begin(struct given *p, const struct version *v, uint64_t limit_us);
/* What children had that its processes have waited for: `cpu_us` knows nothing of them. */
uint64_t given_ended_us(const struct version *v);
/* The same where the user wants it to be waited for: however long that is. */
void given_begin_waited(struct given *p, const struct version *v, uint64_t limit_us);
/* The same at the end of all, of one that may have come to a halt. */
void given_begin_ending(struct given *p, const struct version *v, uint64_t limit_us);
/* The monitor has looked at it since then: that was none of its time. */
void given_ours(struct given *p, uint64_t since_us);
/*
 * Serves all that ask.  That is none of its time, but for looks at slots that say so, and whose
 * threads do not ask.
 */
void given_serve(struct given *p, struct monitor *m);
/* It has had its time; or nobody waits any longer. */
bool given_over(struct given *p);
/*
 * The same, for who looks between two of these whether what is waited for has come: it is looked
 * once more behind the end, for that may have been over while we had no processor.
 */
bool given_past(struct given *p);

#endif
