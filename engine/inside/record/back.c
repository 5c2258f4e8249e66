/*
 * A request that can be taken back (rollback/): which descriptors its calls open, and which of
 * them others see or the kernel keeps; and what the program's runtime asks when it has failed.
 * All calls are looked at, also those that a library makes which has no checkpoints.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/signal.h>
#include <linux/stat.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/fd/numbers.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/record/back.h"
#include "engine/inside/record/form.h"
#include "engine/inside/record/words.h"
#include "engine/inside/rollback/rollback.h"

#define TRAITS_SEEN	(TRAITS_GONE | TRAIT_REGISTERS | TRAIT_WRITES | TRAIT_SIGNALS | \
			 TRAIT_ACCEPTS)

static bool is_looked_at(long nr)
{
	const struct call_desc *d = call_find(nr);

	return d && (call_has_variants(nr) || d->class == CLASS_LIFE || call_has(d, TRAITS_SEEN) ||
		     numbers_may_be_given(d));
}

void back_begin(void)
{
	if (!rollback_of())
		return;
	way_set(0, WAY_LONG);	/* ROLLBACK_CALL has no row */
	for (long nr = 0; nr + 1 < SLOT_CALLS; nr++)
		if (is_looked_at(nr))
			way_set((unsigned)nr + 1, WAY_LONG);
}

/* --- descriptors ------------------------------------------------------------------------ */

static void opened_add(void *what, int32_t fd)
{
	struct rollback *r = what;

	if (r->opened >= ROLLBACK_OPENED)
		rollback_spoil("it had opened more descriptors than are noted");
	else
		r->number[r->opened++] = fd;
}

static int opened_find(const struct rollback *r, int64_t fd)
{
	for (uint32_t i = 0; i < r->opened && i < ROLLBACK_OPENED; i++)
		if (r->number[i] == fd)
			return (int)i;
	return -1;
}

static void opened_remove(struct rollback *r, int64_t fd)
{
	int i = opened_find(r, fd);

	if (i >= 0)
		r->number[i] = r->number[--r->opened];
}

/* --- what cannot go back ---------------------------------------------------------------- */

/* What is written to a file or a terminal, or as standard output and error, is no answer. */
static bool is_answer(int32_t fd)
{
	struct statx st = { 0 };

	if ((fd == 1 || fd == 2) && fd != rollback_of()->fd)
		return false;
	if (OWN6(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &st, 0) < 0)
		return true;
	return (st.stx_mode & S_IFMT) != S_IFREG && (st.stx_mode & S_IFMT) != S_IFCHR;
}

static const char *spoils(const struct thread *t, const struct walk *w, long nr)
{
	const struct rollback *r = rollback_of();
	struct numbers n;

	if (w->desc->class == CLASS_LIFE)
		return "it had made a process or thread, or another program";
	if (call_has(w->desc, TRAIT_ACCEPTS))
		return "it had gone on to accept";
	if (call_has(w->desc, TRAIT_SIGNALS) && !crash_sent_to_us(t, nr, w->args))
		return "it had sent a signal";
	if (call_has(w->desc, TRAIT_REGISTERS) && opened_find(r, (int32_t)w->args[0]) < 0)
		return "it had changed what is waited for";
	if (call_has(w->desc, TRAITS_GONE) && numbers_gone(w, &n) &&
	    (n.first != n.last || opened_find(r, n.first) < 0))
		return "it had closed a descriptor";
	if (call_has(w->desc, TRAIT_WRITES) && is_answer((int32_t)w->args[0]))
		return "it had sent something";
	return NULL;
}

bool back_before(struct thread *t, long nr)
{
	uint64_t args[CALL_ARGS];
	const char *why;
	struct walk w;
	int sig;

	if (!is_looked_at(nr) || local_site(t))
		return false;
	call_walk(t, &w, args, nr);
	sig = call_has(w.desc, TRAIT_SIGNALS) ? crash_sent_to_us(t, nr, args) : 0;
	if (crash_signal(sig) && rollback_call(t, sig))
		return true;
	why = w.desc ? spoils(t, &w, nr) : NULL;
	if (why)
		rollback_spoil(why);
	return false;
}

void back_after(struct thread *t, long nr, long result)
{
	struct rollback *r = rollback_of();
	uint64_t args[CALL_ARGS];
	struct numbers n;
	struct walk w;

	if (result < 0 || !is_looked_at(nr) || local_site(t))
		return;
	call_walk(t, &w, args, nr);
	if (!w.desc)
		return;
	w.result = result;
	if (call_has(w.desc, TRAITS_GONE) && numbers_gone(&w, &n) && n.first == n.last)
		opened_remove(r, n.first);
	numbers_given(&w, opened_add, r);
}

/* --- what the runtime asks -------------------------------------------------------------- */

/* A leader's, and who is alone: the monitor looks at the stack, and may say no. */
static long leader_asked(struct thread *t, int sig, uint64_t at)
{
	long reply = request_ask(t, REQ_ROLLBACK, ROLLBACK_ASK, (uint64_t)sig, at);

	if (!reply)
		return 0;
	if (t->has_lane && stream_followed(t))
		lead_note(t, EVENT_BACK, (uint64_t)sig);
	return 1;
}

/* Where the leader's is taken back, as far as is told: behind what is done of a failure. */
static enum { BACK_NONE, BACK_NEXT, BACK_UNTOLD } back_find(const struct thread *t)
{
	struct reader ahead = t->reader;
	const struct event *e = reader_peek(&ahead);
	struct words s = WORDS_NONE;

	ahead.ahead = true;
	for (int n = 0; e; n++, e = reader_next(&ahead)) {
		if (e->kind == EVENT_BACK)
			return BACK_NEXT;
		if (n == WORDS_MAX || !words_hold(&s, e))
			return BACK_NONE;
	}
	return BACK_UNTOLD;
}

bool back_comes(struct thread *t)
{
	struct patience p = PATIENCE(WAIT_back);
	const struct event *e;

	if (!brief()->amends.wanted)
		return false;
	while (back_find(t) == BACK_UNTOLD && patience_step(&p))
		;
	patience_end(&p);
	if (back_find(t) != BACK_NEXT)
		return false;
	while ((e = reader_peek(&t->reader)) && e->kind != EVENT_BACK) {
		lock_passed(t, e);
		follow_take(t);
	}
	return true;
}

/* The leader's request has failed, too, or this is no twin of it. */
static long follower_asked(struct thread *t, int sig, uint64_t at)
{
	const struct event *e;

	for (;;) {
		e = follow_event(t);
		if (!e)
			return leader_asked(t, sig, at);
		if (back_comes(t)) {
			follow_take(t);
			return 1;
		}
		if (request_ask(t, REQ_VERDICT, VERDICT_CRASHED, (uint64_t)sig, at) !=
		    ANSWER_RETRY)
			return 0;
	}
}

static long asked(struct thread *t)
{
	uint64_t at;
	int sig;

	if (rollback_failed(&sig, &at))
		return 1;
	return t->following ? follower_asked(t, sig, at) : leader_asked(t, sig, at);
}

/*
 * What comes next in the stream says how the leader's request has ended.  Each call before which
 * a request ends is an event, so one comes.
 */
static void ends(struct thread *t)
{
	const struct event *e = t->following ? follow_event(t) : NULL;

	if (e && back_comes(t) && rollback_told(t))
		follow_take(t);
}

long back_asked(struct thread *t)
{
	const struct frame *f = &t->frame;

	t->answered = 1;
	if (f->rdi == ROLLBACK_DONE || f->rdi == ROLLBACK_NOT)
		rollback_over(f->rdi == ROLLBACK_DONE);
	if (f->rdi == ROLLBACK_ASK)
		return asked(t);
	if (f->rdi == ROLLBACK_OTHERS)
		return rollback_others(t, f->rsi == 1);
	if (f->rdi == ROLLBACK_ENDS)
		ends(t);
	else if (!t->following || f->rdi == ROLLBACK_NOT || f->rdi == ROLLBACK_BEGUN)
		request_ask(t, REQ_ROLLBACK, f->rdi, boot.rollback, f->rsi);
	/* Its leader went back, and it cannot: it is no follower any more. */
	if (t->following && f->rdi == ROLLBACK_NOT)
		request_ask(t, REQ_VERDICT, VERDICT_UNSUPPORTED, DIFFERS_CALL, 0);
	return 0;
}
