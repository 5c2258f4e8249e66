/*
 * Runs the columns of modules.def.
 *
 * A fork takes the latches of all modules first, as pthread_atfork's handlers do with locks of
 * the program: the child finds each module's state whole, and no latch held.  To make them
 * anew in the child alone would not do, for it would copy rows that are half changed.  Most
 * latches are held for some instructions.  Who holds another may wait for the monitor, or for
 * what the leader is about to tell, which can take long: then the fork goes on without, and
 * the child has what it finds, with the latch free.  These modules keep to an order of stores
 * that bears it.  Where there is no other thread nobody holds one, and none is taken: the page
 * that they are in would be copied for it, in the parent and again in the child.
 */
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/calls/landlock.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/fd/files.h"
#include "engine/inside/fd/mirror.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/seal.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/lanes/policy.h"
#include "engine/inside/lanes/tick.h"
#include "engine/inside/locks/conditions.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/rewind/image.h"
#include "engine/inside/roles/clone.h"
#include "engine/inside/roles/long_way.h"
#include "engine/inside/roles/modules.h"
#include "engine/inside/roles/park.h"
#include "engine/inside/roles/twin.h"
#include "engine/inside/rollback/rollback.h"
#include "engine/inside/state/children.h"
#include "engine/inside/state/early.h"
#include "engine/inside/state/ids.h"
#include "engine/inside/state/limits.h"
#include "engine/inside/state/record_locks.h"
#include "engine/inside/state/take.h"
#include "engine/inside/state/timers.h"
#include "engine/inside/takeover/takers.h"
#include "engine/inside/takeover/wire.h"

_Static_assert(LATCHES < 32, "modules_fork_begin has a bit for each");

static inline void nothing(struct thread *t)
{
	(void)t;
}

static bool is_copy;		/* the process that it is of has learnt all, and has it */

static void state_learn(struct thread *t)
{
	if (is_copy)
		return;
#define MADE(name, note, make, learn, ...) learn(t);
#define EACH(name, note, make, learn, ...) learn(t);
#define LATE(name, note, make, learn, ...) learn(t);
#include "engine/abi/state.def"
}

void modules_copy(struct thread *t)
{
	MUST(!t->following);
	is_copy = false;
	state_learn(t);
}

void modules_copied(void)
{
	is_copy = true;
	timers_copied();
	children_copied();
}

void modules_lead(struct thread *t)
{
#define MODULE(name, on_lead, on_follow, on_fork, on_exec) on_lead(t);
#include "engine/inside/roles/modules.def"
}

/* What memory holds is put right by the one whose it is. */
void modules_lead_guest(struct thread *t)
{
#define EACH(name, note, make, ...) make(t);
#include "engine/abi/state.def"
	took_note(t);
}

void modules_follow(struct thread *t)
{
#define MODULE(name, on_lead, on_follow, on_fork, on_exec) on_follow(t);
#include "engine/inside/roles/modules.def"
	is_copy = false;
}

void modules_exec(struct thread *t)
{
#define MODULE(name, on_lead, on_follow, on_fork, on_exec) on_exec(t);
#define COMPANY(name, on_lead, on_follow, on_fork, on_exec) if (streams.conduct) on_exec(t);
#include "engine/inside/roles/modules.def"
}

uint32_t modules_fork_begin(void)
{
	uint64_t since = 0, end = 0;
	uint32_t taken = 0;

	if (block_is_only(thread_self()))
		return 0;
	for (uint32_t i = 0; i < LATCHES; i++) {
		bool got = latch_try((enum latch)i);

		if (!got && !end) {
			since = clock_ns(CLOCK_MONOTONIC);
			end = since + wait_limit(WAIT_latches);		/* for all of them */
		}
		if (got || latch_take_until((enum latch)i, end))
			taken |= 1u << i;
	}
	if (since)
		wait_note(WAIT_latches, clock_ns(CLOCK_MONOTONIC) - since,
			  taken != (1u << LATCHES) - 1);
	return taken;
}

void modules_fork_end(uint32_t taken)
{
	for (uint32_t i = 0; i < LATCHES; i++)
		if (taken >> i & 1)
			latch_give((enum latch)i);
}

/* Where nothing was written there is nothing to forget, and no page to be copied for it. */
void modules_forked(struct thread *t)
{
	for (uint32_t i = 0; i < LATCHES; i++)
		if (latch_words[i] != LATCH_FREE)
			latch_words[i] = LATCH_FREE;
	t->latches = 0;
#define MODULE(name, on_lead, on_follow, on_fork, on_exec) on_fork(t);
#define COMPANY(name, on_lead, on_follow, on_fork, on_exec) if (streams.conduct) on_fork(t);
#include "engine/inside/roles/modules.def"
}
