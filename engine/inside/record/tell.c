/*
 * The told way: a leader's plain call, made in the gate with the program's registers, is
 * written down here.  Each row of the table has a recorder of its own, which the compiler
 * makes from it: what it writes is what lead_call() would have.
 *
 * The asked way is the same for a call that is looked at before it is made, too: because of its
 * row (row_asks), because the process has threads, or was a follower before (tell_off).  A
 * clock of the vDSO is read then, and there is no call.
 *
 * A row goes one of them where the event says all of its calls (row_tells), and a call where
 * nothing else is to be seen to: the gate looks (LANE_TELLS), and lead_ask().
 */
#include "engine/abi/rows.h"

#include <linux/errno.h>

#include "engine/core/must.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/calls/private.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/record/form.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/tell.h"
#include "engine/inside/record/told.h"
#include "engine/inside/state/ids.h"

static INLINE bool row_tells(const struct call_desc *d)
{
	return d->traits & TRAIT_HOT && !(d->traits & (TRAIT_SPECIAL | TRAIT_SIGNALS)) &&
	       d->class != CLASS_LIFE && d->class != CLASS_LOCAL;
}

/* Its calls are always looked at beforehand. */
static bool row_asks(const struct plan *p)
{
	return p->opens || p->recipe.room >= 0 || p->care & (CARE_ALIAS | TRAIT_CLOCK);
}

/* `alone` is a constant: there was nothing to be done before the call. */
static INLINE long tell_row(struct thread *t, const struct call_desc *d, long result, bool alone)
{
	struct walk w = { .desc = d, .args = t->frame.arg, .result = result,
			  .recipe = &row_plans[d->nr + 1].recipe };

	if (!row_tells(d))	/* known beforehand: such a recorder is empty, and never called */
		return result;
	if (recipe_room_arg(d) >= 0)
		w.room = t->asked_room;
	if (alone) {
		call_told_alone(t, &w, d);
	} else {
		call_told(t, &w, d->nr, care_if_alone(care_of_row(d)), t->asked_seq, d);
	}
	return w.result;
}

#define SYSCALL(nr, name, class, ...) \
	static __attribute__((noinline)) long tell_##name(struct thread *t, long result) \
	{ \
		return tell_row(t, &row_##name, result, true); \
	} \
	static __attribute__((noinline)) long asked_##name(struct thread *t, long result) \
	{ \
		return tell_row(t, &row_##name, result, false); \
	}
#include "engine/abi/syscalls.def"
#undef SYSCALL

static INLINE long tell(struct thread *t, long result)
{
	switch (t->frame.slot - 1) {
#define SYSCALL(nr, name, class, ...) \
	case nr: \
		return tell_##name(t, result);
#include "engine/abi/syscalls.def"
#undef SYSCALL
	default:
		MUST(!"a row that has a recorder");
		return result;
	}
}

static INLINE long asked_tell(struct thread *t, long result)
{
	switch (t->frame.slot - 1) {
#define SYSCALL(nr, name, class, ...) \
	case nr: \
		return asked_##name(t, result);
#include "engine/abi/syscalls.def"
#undef SYSCALL
	default:
		MUST(!"a row that has a recorder");
		return result;
	}
}

/* Where it came back the program has its result, else its number: it is made again. */
static INLINE void told(struct thread *t, long result)
{
	t->restart = result == CALL_RESTART;
	if (t->restart)
		return;
	t->counts[t->frame.tier * SLOT_CALLS + t->frame.slot]++;
	t->frame.rax = (uint64_t)result;
}

/* A site of a loader's or an allocator's; or no call: its low 16 bits alone gave it the slot. */
static INLINE bool is_untold(const struct thread *t)
{
	return (uint32_t)t->frame.rax + 1 != t->frame.slot || local_site(t);
}

/* The call in the frame has been made, and was not looked at before. */
void lead_tell(struct thread *t, long result)
{
	t->call_state = 0;
	if (__builtin_expect(is_untold(t), 0))
		own_files_count(t, plan_of((long)t->frame.slot - 1)->desc, result);
	else
		result = tell(t, result);
	told(t, result);
}

/* The same where it was. */
void lead_asked_tell(struct thread *t, long result)
{
	t->away = 0;
	told(t, tell_off ? asked_tell(t, result) : tell(t, result));
}

/* What its row knows of it is not all. */
static bool is_odd(const struct thread *t, const struct plan *p, const struct walk *w)
{
	return is_untold(t) || tell_off & TELL_NONE || !stream_followed(t) ||
	       (p->opens && private_path(t->frame.arg[call_path_arg(w->desc)])) ||
	       (p->care & CARE_ALIAS && step_aliases(w));
}

static enum asked clock_tell(struct thread *t)
{
	long result;

	if (tell_off & TELL_NONE || !stream_followed(t))
		return ASKED_LONG;
	result = clock_call(t, (long)t->frame.slot - 1);
	t->counts[COUNT_ANSWERED * SLOT_CALLS + t->frame.slot] += t->answered;
	t->asked_seq = 0;
	lead_asked_tell(t, result);
	return ASKED_DONE;
}

/* The call in the frame is about to be made. */
int lead_ask(struct thread *t)
{
	const struct plan *p = &row_plans[t->frame.slot];
	struct walk w = { .desc = p->desc, .args = t->frame.arg, .recipe = &p->recipe };
	unsigned care;

	t->call_state = 0;
	if (call_is_vdso(t))
		return clock_tell(t);
	if (is_odd(t, p, &w))
		return ASKED_LONG;
	care = care_if_alone(p->care);
	t->asked_seq = care & CARE_BEFORE ? care_before(t, &w, w.desc->nr, care) : 0;
	t->asked_room = p->recipe.room >= 0 ? room_before(&w) : 0;
	t->away = away_in(care, t->asked_seq);
	return ASKED_MAKE;
}

/* Ids need no translating while no version but this one has led (ids_begin). */
void tell_prepare(void)
{
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++) {
		const struct plan *p = &row_plans[nr + 1];

		if (p->tells && row_tells(p->desc) && (ids_are_ours() || !call_has_ids(p->desc)))
			way_set((unsigned)nr + 1, row_asks(p) ? WAY_ASKED : WAY_TOLD);
	}
}
