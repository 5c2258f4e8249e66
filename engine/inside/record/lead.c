/*
 * The leader: each call that is not a version's own affair becomes an event in
 * the thread's lane, after it was made, with what a follower needs to answer and
 * to compare.  Nothing here waits for a follower unless the ring is full.
 *
 * Signals are held to a boundary that the stream knows: before a call whose event
 * is still to come, or behind one whose event says EVENT_SIGNAL_NEXT (t->announced).
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/clock.h"
#include "engine/inside/calls/ids_call.h"
#include "engine/inside/calls/private.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/fd/follow_epoll.h"
#include "engine/inside/fd/mirror.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/tick.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/form.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/life.h"
#include "engine/inside/record/quiet.h"
#include "engine/inside/record/told.h"
#include "engine/inside/runtime/callers.h"
#include "engine/inside/sample/inputs.h"
#include "engine/inside/sample/sample.h"
#include "engine/inside/sample/scope.h"
#include "engine/inside/sample/seam.h"
#include "engine/inside/signal/sigcalls.h"
#include "engine/inside/state/early.h"
#include "engine/inside/state/ids.h"

/* What is looked after though nobody hears of the call. */
#define CARE_UNTOLD	(CARE_POLLS | CARE_KEPT | TRAIT_RIGHTS)

void lead_told(struct thread *t, long nr, int64_t result)
{
	uint64_t args[CALL_ARGS];
	struct walk w;

	if (!stream_followed(t) || t->kept)
		return;
	sample_due(t);
	call_walk(t, &w, args, nr);
	w.result = result;
	call_tell(t, &w, nr);
}

/*
 * Nobody follows: only ids and data of a former leader are still to be put right; epoll_lead
 * has been asked.
 */
static long lead_alone(struct thread *t, struct walk *w, long nr)
{
	bool ours = ids_are_ours();

	if ((ours && !epoll_inherited()) || !w->desc)
		return call_serve(t, nr);
	w->result = ours ? call_serve(t, nr) : ids_call(t, w->desc, nr);
	epoll_led(t, w, nr);
	epoll_lead_end(t, w->result);
	return w->result;
}

/*
 * A thread without a lane: it was made while nobody followed, or there were as many as lanes.
 * Where its version took over it has the ids and the data of the one before like all others.
 */
long lead_laneless(struct thread *t, long nr)
{
	uint64_t args[CALL_ARGS];
	struct walk w;

	if ((ids_are_ours() && !epoll_inherited()) || !early_may_come())
		return serve_special(t, nr);
	call_walk(t, &w, args, nr);
	if (call_has(w.desc, TRAIT_REGISTERS))
		epoll_lead(t, args, nr);
	if (call_has(w.desc, TRAITS_GONE))
		numbers_go(t, &w);
	w.result = lead_alone(t, &w, nr);
	if (call_has(w.desc, CARE_CAME))
		numbers_came(t, &w);
	return w.result;
}

static unsigned care_now(const struct plan *p)
{
	return care_if_alone(p->care);
}

/* The call has been made, unless a signal came first. */
static void lead_made(struct thread *t, struct walk *w, long nr, unsigned care, uint64_t seq)
{
	call_told(t, w, nr, care, seq, NULL);
}

/* To followers it is as if another had been given the connection. */
static void accept_kept(struct thread *t, struct walk *w, long nr)
{
	int64_t fd = w->result;

	w->result = -EAGAIN;
	event_begin(t, EVENT_CALL, nr, w->result)->flags |= EVENT_PASSED;
	record_call(&t->writer, w);
	event_end(t);
	w->result = fd;
}

/* In a stateless session: what was made is told, or not, or otherwise. */
static void sample_told(struct thread *t, struct walk *w, long form, unsigned care,
			uint64_t seq, struct scope_row row)
{
	enum sample_way way = w->result == CALL_RESTART ? SAMPLE_TOLD : sample_made(t, w, row);

	uint64_t begun;

	if (way == SAMPLE_TOLD) {
		begun = scope_cost_begin(w);
		lead_made(t, w, form, care, seq);
		scope_cost_end(begun);
	} else if (way == SAMPLE_PASSED) {
		accept_kept(t, w, form);
	}
}

/*
 * Most calls: the kernel serves them, the row says what is told, and nobody else has
 * to know.
 */
static long lead_bare(struct thread *t, long nr, const struct plan *p)
{
	struct walk w = { .desc = p->desc, .args = t->frame.arg, .recipe = &p->recipe };
	unsigned care = care_now(p);
	uint64_t seq = care & CARE_BEFORE ? care_before(t, &w, nr, care) : 0;

	if (p->recipe.room >= 0)
		w.room = room_before(&w);
	t->away = away_in(care, seq);
	call_lends(t);
	w.result = call_is_vdso(t) ? clock_call(t, nr) : call_kernel(t);
	call_told(t, &w, nr, care, seq, NULL);
	return w.result;
}

/* The same where followers hear of a part only, or nobody follows. */
static __attribute__((noinline)) long lead_part(struct thread *t, long nr, const struct plan *p)
{
	struct walk w = { .desc = p->desc, .args = t->frame.arg, .recipe = &p->recipe };
	bool told = stream_followed(t) && scope_enter(t, &w, p->scope);
	unsigned care = care_now(p) & (told ? ~0u : CARE_UNTOLD);
	uint64_t seq = care & CARE_BEFORE ? care_before(t, &w, nr, care) : 0;

	if (told && p->recipe.room >= 0)
		w.room = room_before(&w);
	call_lends(t);
	w.result = call_is_vdso(t) ? clock_call(t, nr) : call_kernel(t);
	if (care & CARE_CAME)
		numbers_came(t, &w);
	if (told) {
		sample_told(t, &w, nr, care, seq, p->scope);
		return w.result;
	}
	if (stateless)
		sample_kept(t, &w, p->scope);
	care_untold(t, &w, nr, care);
	return w.result;
}

/* Each version maps for itself, but what stands behind a descriptor is the leader's. */
static long lead_mmap(struct thread *t, const uint64_t args[CALL_ARGS])
{
	bool told = !caller_is_local(t, __NR_mmap);
	long result = call_serve(t, __NR_mmap);

	if (!told || !stream_followed(t) || t->kept)
		return result;
	sample_due(t);
	mirror_tell(t, args, result);
	return result;
}

void own_files_count(struct thread *t, const struct call_desc *d, int64_t result)
{
	if (call_has(d, TRAIT_OPENS) && result >= 0 && t->own_files < UINT8_MAX)
		t->own_files++;
	else if (call_has(d, TRAIT_CLOSES) && !result && t->own_files && !--t->own_files)
		t->files_waited = 0;
}

static long lead_walked(struct thread *t, long nr, const struct plan *p, struct walk w, long form);

static __attribute__((noinline)) long lead_kept(struct thread *t, long nr, const struct plan *p,
						struct walk w, long form)
{
	struct sent sent;

	step_keep(&w, &sent);
	return lead_walked(t, nr, p, w, form);
}

/* With ids, memory, signals, descriptors or threads that are looked after. */
static __attribute__((noinline)) long lead_full(struct thread *t, long nr, const struct plan *p)
{
	uint64_t args[CALL_ARGS];
	struct walk w;
	long form;

	form = call_walk(t, &w, args, nr);
	w.room = room_before(&w);
	return p->care & CARE_ALIAS && w.desc && step_aliases(&w) ?
	       lead_kept(t, nr, p, w, form) : lead_walked(t, nr, p, w, form);
}

/* Nobody hears of it. */
static long lead_untold(struct thread *t, struct walk *w, long nr, unsigned care,
			struct scope_row row)
{
	w->result = lead_alone(t, w, nr);
	if (care & CARE_CAME)
		numbers_came(t, w);
	if (stateless)
		sample_kept(t, w, row);
	care_untold(t, w, nr, care);
	return w->result;
}

/* It may sleep there, and tells nothing: who waits for it is to see that. */
static long lead_local(struct thread *t, long nr, const struct call_desc *d)
{
	long result;

	MUST(t->has_lane && d->class == CLASS_LOCAL);
	PUBLISH(thread_away, &t->away, AWAY_UNTOLD);
	result = ids_are_ours() ? call_serve(t, nr) : ids_call(t, d, nr);
	PUBLISH(thread_away, &t->away, 0);
	return result;
}

static long lead_walked(struct thread *t, long nr, const struct plan *p, struct walk w, long form)
{
	uint64_t *args = (uint64_t *)w.args, seq;
	struct scope_row row = { 0, 0 };
	unsigned care;
	bool told;

	if (nr == __NR_mmap && !(args[3] & MAP_ANONYMOUS) && (int32_t)args[4] >= 0)
		return lead_mmap(t, args);
	if (!w.desc)
		return call_serve(t, nr);
	if (w.desc->class == CLASS_LOCAL)
		return lead_local(t, nr, w.desc);
	if (call_has(w.desc, TRAIT_SIGNALS) && crash_call(t, nr, args))
		return ids_call(t, w.desc, nr);
	if (caller_is_local(t, nr)) {
		report_tell(t, nr);
		w.result = ids_call(t, w.desc, nr);
		own_files_count(t, w.desc, w.result);
		if (call_has(w.desc, TRAIT_OPENS) && w.result >= 0 && stream_followed(t) &&
		    !stateless)
			mirror_tell_loaded(t, nr, w.result);
		return w.result;
	}
	if (seam_opened(t, &w)) {
		seam_pass(t);
		return -ENOENT;
	}
	care = p->desc ? care_now(p) : care_if_alone(care_of(w.desc) | (p->care & CARE_PLACES));
	told = stream_followed(t);
	if (stateless)
		row = scope_row(w.desc);
	if (stateless && told)
		told = scope_enter(t, &w, row);
	care_before(t, &w, nr, care & CARE_UNTOLD);
	/* Each thread has its lane from its birth: a twin of it may come when it likes. */
	if (!told && (stateless || w.desc->class != CLASS_LIFE))
		return lead_untold(t, &w, nr, care, row);
	if (w.desc->class == CLASS_LIFE) {
		sample_due(t);
		tick_over(t);
		return lead_life(t, nr, &w);
	}
	seq = seq_before(t, care);
	giving_begin(t, &w, care, seq);
	t->away = away_in(care, seq);
	call_lends(t);
	w.result = ids_are_ours() ? call_serve(t, nr) : ids_call(t, w.desc, nr);
	if (call_has(w.desc, TRAIT_SIGNALS))
		signal_owe(t, &w);
	if (stateless && care & CARE_CAME)
		numbers_came(t, &w);
	if (stateless)
		sample_told(t, &w, form, care, seq, row);
	else
		lead_made(t, &w, form, care, seq);
	return w.result;
}

/* What it sends is to be kept: that takes more room than most calls have. */
static bool bare_aliases(const struct thread *t, const struct plan *p)
{
	struct walk w = { .desc = p->desc, .args = t->frame.arg, .recipe = &p->recipe };

	return p->care & CARE_ALIAS && step_aliases(&w);
}

static __attribute__((noinline)) long lead_other(struct thread *t, long nr, const struct plan *p)
{
	long result;

	quiet_look(t);
	lead_settle(t);
	if (t->faulting)
		fault_look(t);
	if ((p->opens || private_count) && private_call(t, nr, &result))
		return result;
	if (p->seam)
		seam_pass(t);
	if (p->bare && ids_are_ours() && !boot.runtimes && !local_site(t) && !bare_aliases(t, p))
		return stateless || !stream_followed(t) ? lead_part(t, nr, p) :
							  lead_bare(t, nr, p);
	return lead_full(t, nr, p);
}

long lead_call(struct thread *t, long nr)
{
	const struct plan *p = plan_of(nr);

	if (p->plain && !private_count && !(t->writer.owes | t->faulting) && !boot.runtimes &&
	    ids_are_ours() && !local_site(t) && stream_followed(t)) {
		t->unheard = 0;
		return lead_bare(t, nr, p);
	}
	return lead_other(t, nr, p);
}

/* The thread has followed until now. */
void lead_resume(struct thread *t)
{
	bool owes;

	MUST(t->following && t->lane < LANES);
	t->following = 0;
	t->away = 0;
	tell_stop(TELL_FOLLOWED);
	ticks_lead(t);
	if (!lane_reopen(&streams, t->lane, &owes)) {
		t->has_lane = 0;
		return;
	}
	fault_lead(t);
	lane_attach(t, &streams);
	writer_owe(&t->writer, owes);
	t->writer.lane->pid = t->pid;
	/* Other followers of the old leader begin the lane when it has one. */
	PUBLISH(lane_owner, &t->writer.lane->owner, t->tid);
	word_wake((const uint32_t *)&t->writer.lane->owner);
}

/*
 * A program begins: after an execve the stream waits to hear how that ended, though it may be
 * another lane than that was told in.
 */
void lead_begin(struct thread *t)
{
	MUST(t->has_lane && !t->following && t->lane < LANES);
	lane_attach(t, &streams);
	t->writer.lane->owner = t->tid;
	t->writer.lane->pid = t->pid;
	if (t->writer.lane->head || boot.hidden & HIDDEN_MOVES)
		lead_exec_done(t, EXEC_HELD);
}
