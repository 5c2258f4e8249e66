/*
 * mve itself fails: a MUST that does not hold, or a fault whose program counter is in our own
 * code.  Nobody else is to pay for it.
 *
 * - A follower ends: the monitor writes a report and drops it.
 * - A leader with a follower is replaced, as one that crashes (crash.c), and dies of it.  The
 *   call that failed may have been made and not told: its connection can be lost.
 * - A leader that nobody can replace goes on.  Its followers are dropped, for what it tells
 *   may be wrong; the thread leaves what failed as if its call were served: with the kernel's
 *   answer if it has one already (T_MADE, gate.S), else the call is made, with nobody told.
 *   What fails in that again is died of.
 *
 * On the short way from a lock's function (`quick`, lock_gate.S), and in a signal's handler,
 * there is no call to leave: a MUST is passed over there, and a fault is died of.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>

#include "engine/inside/crash/crash.h"
#include "engine/inside/crash/failed.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/must.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/takeover/heir.h"
#include "engine/inside/takeover/standing.h"

#define EXIT_BUG	70

extern char own_start[], own_end[], failed_leave[];

static bool is_ours(uint64_t rip)
{
	return rip >= (uint64_t)own_start && rip < (uint64_t)own_end;
}

/* C code of a call from the gate runs on the block's stack, below what `slow` put there. */
static bool in_call(const struct thread *t, uint64_t sp)
{
	const uint64_t *top = (const uint64_t *)t->stack_top;

	/* `quick` puts the program's stack there twice, `slow` that and its site's end. */
	return sp > (uint64_t)(t + 1) && sp < (uint64_t)(top - 2) && top[-1] != top[-2];
}

_Static_assert(BLOCK_STACK_TOP > 4096 + 16384, "a MUST has room on the stack that failed");

/* A leader: whether another leads now, and this one is to do no more. */
static bool is_replaced(struct thread *t)
{
	return streams.conduct && !t->following && heir_is();
}

static void leader_asks(struct thread *t, uint64_t sig, uint64_t place, uint64_t at)
{
	((struct area *)boot.area)->crash_ns = clock_ns(CLOCK_MONOTONIC);
	standing_begin(t);
	request_ask(t, REQ_FAILED, sig, place, at);
	standing_end(t);
	if (!is_replaced(t) && t->has_lane && stream_followed(t))
		request_ask(t, REQ_FAILED, FAILED_ALONE, place, at);
}

/* Says it; false: it cannot go on, or has said so before and is at it again. */
static bool failed(struct thread *t, uint64_t sig, uint64_t place, uint64_t at)
{
	if (t->failing || !t->slot || request_of(t)->state != RS_IDLE)
		return false;
	t->failing = 1;
	place -= (uint64_t)own_start;
	if (t->following) {
		request_ask(t, REQ_FAILED, sig, place, at);
		OWN1(__NR_exit_group, EXIT_BUG);
	}
	leader_asks(t, sig, place, at);
	if (is_replaced(t)) {
		crash_leave(t);
		return false;
	}
	/* There nobody looks first whether anybody is told. */
	ways_untold();
	return true;
}

bool failed_fault(struct thread *t, int sig, uint64_t at, struct ucontext_raw *uc)
{
	uint64_t rip = uc->regs.rip;

	if (!is_ours(rip) || !failed(t, (uint64_t)sig, rip, at) || !in_call(t, uc->regs.rsp))
		return false;
	uc->regs.rip = (uint64_t)failed_leave;
	return true;
}

static const char *untold;	/* what failed before the thread could ask anything */

static void failed_must(const char *place)
{
	struct thread *t = thread_self();
	uint64_t here = (uint64_t)__builtin_frame_address(0);

	if (!t->slot)
		untold = place;
	if (!failed(t, 0, (uint64_t)place, 0)) {
		if (t->failing && is_replaced(t))
			crash_die(t, SIGABRT);
		return;
	}
	if (in_call(t, here))
		((void (*)(void))failed_leave)();
	t->failing = 0;
}

void failed_begin(void)
{
	must_told = failed_must;
}

void failed_begun(void)
{
	if (untold)
		failed_must(untold);
	untold = NULL;
}
