/*
 * The told way: a leader's plain call, made in the gate with the program's registers, is
 * written down here.  Each row of the table has a recorder of its own, which the compiler
 * makes from it: what it writes is what lead_call() would have.
 *
 * The asked way is the same for a call that is looked at before it is made, too: because of its
 * row (row_asks), also where the process has threads (row_asks_threads), or was a follower before
 * (tell_off).
 *
 * A row goes one of them where the event says all of its calls (row_tells), and a call where
 * nothing else is to be seen to: the gate looks (LANE_TELLS), and lead_ask().
 */
#include "engine/abi/rows.h"

#include <linux/errno.h>

#include "engine/core/must.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/calls/private.h"
#include "engine/inside/fd/inner.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/record/clocks.h"
#include "engine/inside/record/form.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/tell.h"
#include "engine/inside/record/told.h"
#include "engine/inside/state/ids.h"

static bool row_tells(const struct call_desc *d)
{
	return d && !(d->traits & (TRAIT_SPECIAL | TRAIT_SIGNALS)) &&
	       d->class != CLASS_LIFE && d->class != CLASS_LOCAL;
}

/* Its calls are always looked at beforehand. */
static bool row_asks(const struct plan *p)
{
	return p->opens || p->recipe.room >= 0 || p->care & (CARE_ALIAS | TRAIT_CLOCK);
}

/* The same where the process has threads: one of them may be given something, or waits for it. */
static INLINE bool row_asks_threads(const struct call_desc *d)
{
	return care_of_row(d) & CARE_BEFORE;
}

/* What the program gets; the gate has counted the call. */
static INLINE void told(struct thread *t, long result)
{
	t->frame.rax = (uint64_t)result;
}

/* A signal came first: it is made again, and counted then. */
static void untold(struct thread *t)
{
	t->restart = 1;
	t->counts[t->tier * SLOT_CALLS + t->call_slot]--;
}

/* A site of a loader's or an allocator's; or no call: its low 16 bits alone gave it the slot. */
static INLINE bool is_foreign(const struct thread *t, const struct call_desc *d)
{
	return (uint32_t)t->frame.rax != (uint32_t)d->nr || local_site(t);
}

static __attribute__((noinline)) void tell_foreign(struct thread *t, long result)
{
	own_files_count(t, plan_of((long)t->call_slot - 1)->desc, result);
	told(t, result);
}

/* The call in the frame has been made, in a process with one thread. */
static INLINE void tell_row(struct thread *t, const struct call_desc *d, long result)
{
	struct walk w = { .desc = d, .args = t->frame.arg, .result = result };

	if (recipe_room_arg(d) >= 0)
		w.room = t->asked_room;
	if (__builtin_expect(is_foreign(t, d), 0)) {
		tell_foreign(t, result);
		return;
	}
	if (__builtin_expect(result == CALL_RESTART, 0) ||
	    (__builtin_expect(result == -EINTR, 0) && crash_cuts(t))) {
		untold(t);
		return;
	}
	call_told_alone(t, &w, d);
	told(t, result);
}

/* The same where others may be there, or a version was before; it may have been asked about. */
static INLINE void asked_row(struct thread *t, const struct call_desc *d, long result)
{
	struct walk w = { .desc = d, .args = t->frame.arg, .result = result };

	if (recipe_room_arg(d) >= 0)
		w.room = t->asked_room;
	if (__builtin_expect(is_foreign(t, d), 0)) {
		t->away = 0;
		tell_foreign(t, result);
		return;
	}
	call_told(t, &w, d->nr, care_if_alone(care_of_row(d)), t->asked_seq, d);
	if (__builtin_expect(w.result == CALL_RESTART, 0))
		untold(t);
	else
		told(t, w.result);
}

/*
 * Most calls of a row that is quick are an event and nothing else: that is written down in one
 * stretch, without a call and so without a frame.  Where there is anything else nothing has been
 * done yet, and what does all (tell_else, asked_else) begins at the beginning.
 */
static __attribute__((noinline)) void tell_else(void)
{
	struct thread *t = thread_self();

	MUST(t->has_lane && !t->following && t->call_slot < SLOT_CALLS);
	tell_row(t, plan_of((long)t->call_slot - 1)->desc, t->made);
}

static __attribute__((noinline)) void asked_else(void)
{
	struct thread *t = thread_self();

	MUST(t->has_lane && !t->following && t->call_slot < SLOT_CALLS);
	asked_row(t, plan_of((long)t->call_slot - 1)->desc, t->made);
}

/* Nothing is done around its calls. */
static INLINE bool row_is_quick(const struct call_desc *d)
{
	return row_is_brief(d) && recipe_room_arg(d) < 0 &&
	       !(care_of_row(d) & CARE_ALONE & (CARE_MADE | CARE_TOLD | TRAITS_GONE));
}

/* The same where there are threads. */
static INLINE bool row_is_quick_asked(const struct call_desc *d)
{
	return row_is_quick(d) && !care_takes_other(care_of_row(d)) &&
	       !(care_of_row(d) & (CARE_NUMBER | TRAIT_SLEEPS | TRAIT_SIGNALS | TRAIT_CLOCK));
}

/* Whether the site is: it changes no register, so that who asks need keep none. */
__attribute__((no_caller_saved_registers)) bool tell_local(void);
__attribute__((no_caller_saved_registers)) bool tell_local(void)
{
	return local_site(thread_self());
}

/* The compiler is not told of the call: it would see to a stack for it, where there is none. */
static INLINE bool is_local(const struct thread *t)
{
	bool local;

	if (__builtin_expect(!local_spanned(t->frame.site_end), 1))
		return false;
	__asm__ volatile("call tell_local" : "=a"(local) : : "memory", "cc");
	return local;
}

/* The call has another number than its slot's row, which its low 16 bits alone have chosen. */
static INLINE bool slot_is_others(const struct thread *t)
{
	return t->frame.number_high != 0;
}

static INLINE bool is_odd(const struct thread *t, const struct call_desc *d, long result)
{
	return slot_is_others(t) || is_local(t) ||
	       (care_of_row(d) & TRAIT_EPOLL && epoll_inherited()) ||
	       (result < 0 && (result == CALL_RESTART || result == -EINTR)) ||
	       t->tells != LANE_TELLS || !writer_is_free(&t->writer);
}

/* It is, after all: as when it was made. */
static INLINE void untold_yet(const struct call_desc *d)
{
	thread_self()->frame.rax = (uint64_t)d->nr;
}

static INLINE void tell_quick(const struct call_desc *d, long result)
{
	struct thread *t = thread_self();
	const struct walk w = { .desc = d, .args = t->frame.arg, .result = result };

	if (__builtin_expect(is_odd(t, d, result), 0)) {
		tell_else();
		return;
	}
	told(t, result);
	if (__builtin_expect(!cell_write(&t, &w, lead_seq_now + 1, 0, d), 0)) {
		untold_yet(d);
		tell_else();
		return;
	}
	lead_seq_now++;
	/* What is left may be a call. */
	sleepers_look(t);
}

/* What threads have given each other, and this one has not told yet, or begun to give. */
static INLINE bool is_meeting(struct thread *t, const struct call_desc *d)
{
	const unsigned care = care_of_row(d);

	return (care & CARE_EDGES && t->edge) ||
	       (care & CARE_BEFORE && (t->shows || t->writer.lane->giving)) ||
	       (care & TRAIT_READS && fd_is((int32_t)t->frame.arg[0], FD_INNER)) ||
	       (care & TRAIT_EPOLL && !object_is_known(t, object_at((int32_t)t->frame.arg[0])));
}

static INLINE void asked_quick(const struct call_desc *d, long result)
{
	struct thread *t = thread_self();
	const struct walk w = { .desc = d, .args = t->frame.arg, .result = result };
	const uint32_t now = CONSUME(ticks, &ticks);
	uint64_t seq;

	t->away = 0;
	t->ticks.goes_on = 0;
	if (__builtin_expect(is_odd(t, d, result) || tick_shows(t, now) || is_meeting(t, d), 0)) {
		asked_else();
		return;
	}
	seq = care_of_row(d) & CARE_BEFORE ? t->asked_seq : 0;
	seq = seq ? order_now(seq) : seq_draw();
	told(t, result);
	/* A number too many is in nobody's way. */
	if (__builtin_expect(now != CONSUME(ticks, &ticks), 0) ||
	    __builtin_expect(!cell_write(&t, &w, seq, 0, d), 0)) {
		untold_yet(d);
		asked_else();
		return;
	}
	sleepers_look(t);
}

/* care_before(), which most calls need no more of than a number. */
static INLINE uint64_t row_before(struct thread *t, const struct walk *w, long nr, unsigned care)
{
	uint64_t seq;

	if (!(care & CARE_BEFORE))
		return 0;
	if (care & (TRAITS_GONE | TRAIT_REGISTERS | TRAIT_SIGNALS))
		return care_before(t, w, nr, care);
	seq = seq_before(t, care);
	if (call_meets(w->desc) ||
	    (care & TRAIT_WRITES && fd_is((int32_t)w->args[0], FD_INNER)))
		giving_begin(t, w, care, seq);
	return seq;
}

/* The call in the frame is about to be made: enum asked. */
static INLINE int ask_row(struct thread *t, const struct call_desc *d)
{
	const struct plan *p = &row_plans[d->nr + 1];
	struct walk w = { .desc = d, .args = t->frame.arg, .recipe = &p->recipe };
	unsigned care = care_if_alone(care_of_row(d)), off = tell_off;

	/* A clock of the vDSO: more is to be done than record/clocks.c does. */
	if (is_foreign(t, d) || off & TELL_NONE || (d->traits & TRAIT_CLOCK && call_is_vdso(t)) ||
	    (d->traits & TRAIT_OPENS && private_path(t->frame.arg[call_path_arg(d)])) ||
	    (p->care & CARE_ALIAS && step_aliases(&w)))
		return ASKED_LONG;
	if (recipe_room_arg(d) >= 0)
		t->asked_room = room_before(&w);
	if (!off)
		return ASKED_MAKE;
	t->asked_seq = row_before(t, &w, d->nr, care);
	t->away = away_in(care, t->asked_seq);
	return ASKED_MAKE;
}

/* ROW(0 or 1)(nr, name) for each row: whether its first trait is HOT. */
#define HOT_MARK_HOT		, 1
#define HOT_PICK(none, is, ...)	is
#define HOT_LOOK(...)		HOT_PICK(__VA_ARGS__)
#define HOT_FIRST(trait, ...)	HOT_LOOK(HOT_MARK_##trait, 0, )
#define ROW_JOIN(is)		ROW_##is
#define ROW(is)			ROW_JOIN(is)
#define ROW_HOT(traits)		ROW(HOT_FIRST traits)
#define ROW_0(...)

#define ROW_1(nr, name) \
	static void tell_##name(long result) \
	{ \
		if (row_is_quick(&row_##name)) \
			tell_quick(&row_##name, result); \
		else \
			tell_row(thread_self(), &row_##name, result); \
	} \
	static void asked_##name(long result) \
	{ \
		if (row_is_quick_asked(&row_##name)) \
			asked_quick(&row_##name, result); \
		else \
			asked_row(thread_self(), &row_##name, result); \
	} \
	static int ask_##name(struct thread *t) \
	{ \
		return ask_row(t, &row_##name); \
	}
#define SYSCALL(nr, name, class, traits, ...) ROW_HOT(traits)(nr, name)
#include "engine/abi/syscalls.def"
#undef ROW_1

/* Ids need no translating while no version but this one has led (ids_begin). */
static void row_prepare(unsigned slot)
{
	const struct plan *p = &row_plans[slot];

	if (row_tells(p->desc) && p->tells && (ids_are_ours() || !call_has_ids(p->desc)))
		way_set(slot, row_asks(p) ? WAY_ASKED : WAY_TOLD);
}

void tell_prepare(void)
{
	tell_begin();
	clocks_prepare();
#define ROW_1(nr, name) \
	way_calls(nr + 1, tell_##name, asked_##name, ask_##name, \
		  !row_asks(plan_of(nr)) && row_asks_threads(&row_##name)); \
	row_prepare(nr + 1);
#define SYSCALL(nr, name, class, traits, ...) ROW_HOT(traits)(nr, name)
#include "engine/abi/syscalls.def"
#undef ROW_1
}
