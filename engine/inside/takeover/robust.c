/*
 * Robust mutexes.  When a thread ends the kernel walks through those that it holds, and marks the
 * ones whose word names it.  A thread of a follower, or of one that has taken over, is named there
 * by the id that the program knows, which is not the kernel's: so it does that itself, before it
 * ends.  One that is killed does not, so that mutexes between processes stay held.
 *
 * The list is the program's: each address may be anything.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>

#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/takeover/robust.h"

#define NEXT_PI		1ull	/* of an address: its mutex inherits priority */

/* `asked`: it was about to take it, or to give it up. */
static void word_leave(const struct thread *t, uint64_t at, bool inherits, bool asked)
{
	uint32_t was;
	bool wakes;

	if (at % sizeof(was) || target_in(&was, at, sizeof(was)))
		return;
	wakes = asked && !(was & FUTEX_TID_MASK);	/* given up, and nobody woken yet */
	while ((was & FUTEX_TID_MASK) == (uint32_t)t->vtid) {
		wakes = was & FUTEX_WAITERS;
		if (target_swap(at, (int32_t)was,
				(int32_t)((was & FUTEX_WAITERS) | FUTEX_OWNER_DIED)) ||
		    target_in(&was, at, sizeof(was)))
			return;
	}
	if (wakes && !inherits)
		OWN3(__NR_futex, at, FUTEX_WAKE, 1);
}

void robust_leave(const struct thread *t)
{
	struct robust_list_head head;
	uint64_t at = 0, size = 0, next;

	MUST(t->tid > 0);
	/* One that is alone has no other id. */
	if (!t->vtid || t->vtid == t->tid || OWN3(__NR_get_robust_list, 0, &at, &size) < 0 || !at ||
	    target_in(&head, at, sizeof(head)))
		return;
	next = (uint64_t)head.list.next;
	for (unsigned i = 0; i < ROBUST_LIST_LIMIT && (next & ~NEXT_PI) != at; i++) {
		uint64_t entry = next & ~NEXT_PI;
		bool inherits = next & NEXT_PI;
		long more = target_in(&next, entry, sizeof(next));

		if (entry != ((uint64_t)head.list_op_pending & ~NEXT_PI))
			word_leave(t, entry + (uint64_t)head.futex_offset, inherits, false);
		if (more)
			return;
	}
	next = (uint64_t)head.list_op_pending;
	if (next & ~NEXT_PI)
		word_leave(t, (next & ~NEXT_PI) + (uint64_t)head.futex_offset, next & NEXT_PI,
			   true);
}
