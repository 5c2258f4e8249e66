/*
 * By which policy a follower's threads get a processor.
 *
 * A follower sleeps and wakes all the time, and who wakes may take the processor from whom it
 * finds there: the leader's clients, say, so that the leader runs out of requests and sleeps,
 * too.  A thread that is SCHED_BATCH gets as much of a processor as one of the usual policy, but
 * none at another's cost in the moment when it wakes.  Of another policy than these two it has
 * been made by the program, or by who started it, and stays so.
 *
 * Who leads is of the usual policy again.  Where the program has chosen SCHED_BATCH the monitor
 * sees it at the old leader (policy_bring).
 */
#include <asm/unistd.h>
#include <linux/sched.h>

#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/lanes/policy.h"

static void policies_set(long from, long to)
{
	const struct thread *o;
	int32_t priority = 0;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (OWN1(__NR_sched_getscheduler, o->tid) == from)
			OWN3(__NR_sched_setscheduler, o->tid, to, &priority);
}

void policy_follow(struct thread *t)
{
	(void)t;
	policies_set(SCHED_NORMAL, SCHED_BATCH);
}

void policy_lead(struct thread *t)
{
	(void)t;
	policies_set(SCHED_BATCH, SCHED_NORMAL);
}
