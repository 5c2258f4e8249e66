/*
 * The told way: a leader's plain call, made in the gate with the program's registers, is
 * written down here.  Each row of the table has a recorder of its own, which the compiler
 * makes from it: what it writes is what lead_call() would have.
 *
 * A row goes this way where nothing but the event hangs on its calls (row_tells), and a call
 * where nothing else is to be seen to: the gate looks (tell_off, LANE_TELLS).
 */
#include "engine/abi/rows.h"

#include <linux/errno.h>

#include "engine/core/must.h"
#include "engine/core/record_row.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/tell.h"
#include "engine/inside/state/ids.h"

/* Traits by which a leader has nothing to do where it has one thread; WAITS is seen to here. */
#define TELL_TRAITS	(TRAIT_HOT | TRAIT_WAITS | TRAIT_SLEEPS | TRAIT_POLLS | TRAIT_READS | \
			 TRAIT_WRITES | TRAIT_RULE_FREE | TRAIT_RULE_PRIVATE | TRAIT_RULE_GUARDED)

static INLINE bool row_tells(const struct call_desc *d)
{
	return d->traits & TRAIT_HOT && !(d->traits & ~(unsigned)TELL_TRAITS) &&
	       d->class != CLASS_LIFE && d->class != CLASS_LOCAL && d->result != KIND_FD &&
	       recipe_room_arg(d) < 0;
}

/* A signal has come in the call: followers hear of it behind this event. */
static __attribute__((noinline)) void signal_next(struct thread *t)
{
	t->writer.open->flags |= EVENT_SIGNAL_NEXT;
	t->announced = 1;
}

/* The chunk is full, or the one before was not ours. */
static __attribute__((noinline)) struct event *cell_wait(struct thread *t, long nr)
{
	if (t->writer.owes)
		host_settle(&t->writer);
	return host_begin(&t->writer, EVENT_CALL, (uint16_t)nr);
}

static INLINE void tell_row(struct thread *t, const struct call_desc *d, long result)
{
	struct walk w = { .desc = d, .args = t->frame.arg, .result = result };
	struct event *e;

	if (!row_tells(d))	/* known beforehand: such a recorder is empty, and never called */
		return;
	e = t->writer.owes ? NULL : writer_begin(&t->writer, EVENT_CALL, (uint16_t)d->nr);
	if (__builtin_expect(!e, 0))
		e = cell_wait(t, d->nr);
	t->counts[t->frame.tier * SLOT_CALLS + (unsigned)d->nr + 1]++;
	e->seq = order_now(++lead_seq_now);
	e->result = result;
	record_row(&t->writer, &w, d);
	if (__builtin_expect(t->pending, 0))
		signal_next(t);
	writer_commit(&t->writer);
	if (d->traits & TRAIT_WAITS)
		sleepers_look(t);
}

#define SYSCALL(nr, name, class, ...) \
	static __attribute__((noinline)) void tell_##name(struct thread *t, long result) \
	{ \
		tell_row(t, &row_##name, result); \
	}
#include "engine/abi/syscalls.def"
#undef SYSCALL

static INLINE void tell(struct thread *t, long result)
{
	switch (t->frame.slot - 1) {
#define SYSCALL(nr, name, class, ...) \
	case nr: \
		tell_##name(t, result); \
		break;
#include "engine/abi/syscalls.def"
#undef SYSCALL
	default:
		MUST(!"a row that has a recorder");
	}
}

/* A site of a loader's or an allocator's; or no call: its low 16 bits alone gave it the slot. */
static bool is_untold(const struct thread *t)
{
	return (uint32_t)t->frame.rax + 1 != t->frame.slot || local_site(t);
}

/* The call in the frame has been made. */
void lead_tell(struct thread *t, long result)
{
	bool untold = is_untold(t);

	t->call_state = 0;
	t->restart = 0;
	t->frame.rax = (uint64_t)result;
	if (untold) {
		t->counts[t->frame.tier * SLOT_CALLS + t->frame.slot]++;
	} else if (result == -EINTR && crash_cuts(t)) {
		t->frame.rax = t->frame.slot - 1;
		t->restart = 1;
	} else {
		tell(t, result);
	}
}

/* Ids need no translating while no version but this one has led (ids_begin). */
void tell_prepare(void)
{
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++) {
		const struct plan *p = &row_plans[nr + 1];

		if (p->plain && row_tells(p->desc) && (ids_are_ours() || !call_has_ids(p->desc)))
			way_set((unsigned)nr + 1, WAY_TOLD);
	}
}
