/*
 * Signals that a leader was told, for its follower.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/order/edges.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/order.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/timers.h"

/* The leader's word: by a number that is no signal's, memory beside our tables is read. */
static bool is_signal(const uint8_t *info)
{
	int32_t sig = info_int(info, INFO_SIGNO);

	return sig >= 1 && sig <= SIGNALS;
}

/* Its siginfo; true: another came with it. */
static bool signal_take(struct thread *t, const struct event *e, uint8_t *info)
{
	bool more = e->flags & EVENT_SIGNAL_NEXT, meant = e->flags & EVENT_MEANT;

	/*
	 * Its handler says in plain memory what others go by.  One that sleeps in a futex finds it
	 * here as soon as it is told, and others may be a ring behind.
	 */
	order_wait_all_told(t, e->seq);
	edge_meet(t, e);
	if (!follow_payload(&t->reader, info, SIGINFO_SIZE) || !is_signal(info))
		follow_broken(t);
	follow_take(t);
	crash_meant(t, info_int(info, INFO_SIGNO), meant);
	timers_signal(info);
	return more;
}

/* Readies the program's handler, and those of what came with it, to run at the call's end. */
void follow_signal(struct thread *t, const struct event *e)
{
	uint8_t first[SIGINFO_SIZE];
	bool more = signal_take(t, e, first);

	MUST(t->following && t->busy);	/* it comes at the end of a call */

	for (t->nexts = 0; more && t->nexts < SIGNALS_NEXT; t->nexts++) {
		uint8_t info[SIGINFO_SIZE] = { 0 };

		e = follow_event(t);
		if (!e || e->kind != EVENT_SIGNAL)
			break;
		more = signal_take(t, e, info);
		bytes_copy(t->next_info[t->nexts], info, SIGINFO_USED);
	}
	t->held_mask = signals_block(t);
	t->pending = 1;
	/* Who is asked to stand before that has nothing noted. */
	bytes_copy(t->held_info, first, SIGINFO_SIZE);
	t->announced = 1;
}

/* The mask that a handler runs under when it cut such a call short. */
static void masked_note(struct thread *t, long nr)
{
	const struct frame *f = &t->frame;
	uint64_t at = nr == __NR_rt_sigsuspend ? f->rdi : nr == __NR_ppoll ? f->r10
		    : nr == __NR_epoll_pwait || nr == __NR_epoll_pwait2 ? f->r8 : 0;

	if (nr == __NR_pselect6 && f->r9)
		target_in(&at, f->r9, sizeof(at));
	t->has_temp_mask = at && !target_in(&t->temp_mask, at, 8);
}

/* The leader's handler ran before it went on: so does ours. */
void follow_signal_next(struct thread *t, long nr, long result)
{
	const struct event *e = follow_event(t);

	if (e && event_is_baton(e)) {
		if (!baton_meet(t, e))
			return;
	} else if (e && e->kind == EVENT_SIGNAL) {
		follow_signal(t, e);
	} else {
		return;
	}
	if (result == -EINTR)
		masked_note(t, nr);
}
