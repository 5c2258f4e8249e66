/*
 * What threads of a leader do for one another: numbers of descriptors that are closed
 * and given again, registrations, bytes.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/core/walk.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/locks.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/others.h"
#include "engine/inside/takeover/take.h"

/*
 * A descriptor's number is used again as soon as the kernel has closed it, before
 * the thread that closed it has told so.  Who is given the number waits for that:
 * its event stands behind the other's, and a follower's thread waits likewise
 * (order_wait_all_told).
 */
#define CLOSING_FDS	16384
#define CLOSING_YIELDS	1000

static uint8_t closing[CLOSING_FDS];

void closing_begin(const struct thread *t, const struct walk *w)
{
	take_closing(t, (int32_t)w->args[0]);
	inner_closed((int32_t)w->args[0]);
	/* Release: pairs with closing_wait. */
	if (locks_on && w->args[0] < CLOSING_FDS)
		__atomic_store_n(&closing[w->args[0]], 1, __ATOMIC_RELEASE);
}

void closing_end(const struct walk *w)
{
	/* Release: pairs with closing_wait; the event is published. */
	if (locks_on && w->args[0] < CLOSING_FDS)
		__atomic_store_n(&closing[w->args[0]], 0, __ATOMIC_RELEASE);
}

void closing_wait(const struct walk *w)
{
	uint64_t fd = (uint64_t)w->result;

	if (w->desc->result != KIND_FD || fd >= CLOSING_FDS)
		return;
	/* Acquire: pairs with closing_begin. */
	for (int i = 0; __atomic_load_n(&closing[fd], __ATOMIC_ACQUIRE); i++) {
		if (i == CLOSING_YIELDS)	/* its thread stayed behind at a fork */
			closing[fd] = 0;
		OWN0(__NR_sched_yield);
	}
}

/*
 * Threads that register for one another: what one does before its epoll_ctl, the one
 * that waits finds done.  Who waits alone, for what it has registered itself or was
 * given at its beginning, need not look at others.
 */
#define POLLED_FDS	4096
#define STRANGERS	64	/* waits that one registration by another is good for */

static struct polled {
	int32_t owner;		/* the thread that registered or waited first, or waited last */
	uint32_t strangers;
} pollers[POLLED_FDS];

void polled_by(const struct thread *t, long nr)
{
	uint64_t fd = t->frame.rdi;

	if (nr != __NR_epoll_ctl || !locks_on || fd >= POLLED_FDS)
		return;
	if (!pollers[fd].owner)
		pollers[fd].owner = t->tid;
	if (pollers[fd].owner != t->tid)
		/* Release: pairs with polled; the call is still to be made. */
		__atomic_store_n(&pollers[fd].strangers, STRANGERS, __ATOMIC_RELEASE);
}

/* What the event of a wait says. */
static uint8_t polled(const struct walk *w, long nr)
{
	uint64_t fd = w->args[0];
	uint32_t strangers;
	int32_t owner;

	if (nr == __NR_epoll_ctl || nr == __NR_close || fd >= POLLED_FDS || w->result < 0)
		return 0;
	if (!w->result)
		return EVENT_AFTER;
	owner = __atomic_exchange_n(&pollers[fd].owner, thread_self()->tid, __ATOMIC_ACQ_REL);
	if (owner && owner != thread_self()->tid)
		__atomic_store_n(&pollers[fd].strangers, STRANGERS, __ATOMIC_RELAXED);
	/* Acquire: pairs with polled_by. */
	strangers = __atomic_load_n(&pollers[fd].strangers, __ATOMIC_ACQUIRE);
	if (!strangers)
		return 0;
	/* Of two that count at once one is lost; it does not become less than none. */
	__atomic_store_n(&pollers[fd].strangers, strangers - 1, __ATOMIC_RELAXED);
	return EVENT_AFTER;
}

/*
 * Bytes or registrations of another thread: what it was told before comes first.  The
 * same where a thread has slept, to look then at what others may have done.
 */
uint8_t after_others(const struct walk *w, long nr, unsigned care)
{
	if (care & CARE_POLLS)
		return polled(w, nr);
	return care & (TRAIT_POLLS | TRAIT_SLEEPS) || (care & TRAIT_READS && inner_is((long)w->args[0])) ?
	       EVENT_AFTER : 0;
}

/* Others may meet what the call gives before it is told. */
void giving_begin(struct thread *t, long nr, unsigned care, uint64_t seq)
{
	if (seq && (nr == __NR_epoll_ctl || care & TRAIT_SIGNALS ||
		    (care & TRAIT_WRITES && inner_is((long)t->frame.rdi))))
		giving_set(t, seq);
}
