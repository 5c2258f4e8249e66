/*
 * What a version dies of, and what it does from there on.
 *
 * A leader's death is told to the monitor before it is died: when the default action of a
 * deadly signal is about to act, when a handler that is there for one time is, and when
 * the program is about to send itself such a signal.  Of the last the call is not made, and
 * so not told, before the answer is there: a successor whose twin makes it, too, makes it
 * in earnest, and one that does not never hears of it.
 *
 * What one process of the version sends another is none of that: a parent that ends a child
 * which hangs means to, and goes on.  But the end of the head is the version's in any case.
 *
 * Any other handler of such a signal may end in death, or go on as if nothing had been
 * (virtual machines live on faults): faulting.c.  If the leader dies of it, what is behind the
 * mark is compared with nobody.
 */
#include <asm/unistd.h>
#include <linux/signal.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/window.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/takeover/heir.h"
#include "engine/inside/takeover/robust.h"
#include "engine/inside/takeover/standing.h"

/* Whose doing it is only the kernel can say; the leader's followers hear it with the signal. */
static bool is_meant(struct thread *t, const uint8_t *info)
{
	int32_t code = info_int(info, INFO_CODE), pid = info_int(info, INFO_PID);

	if (code != SI_USER && code != SI_TKILL && code != SI_QUEUE)
		return false;
	if (t->following)
		return t->meant >> info_int(info, INFO_SIGNO) & 1;
	return t->has_lane && pid > 0 && pid != t->pid &&
	       request_ask(t, REQ_MEANT, (uint64_t)pid, 0, 0) > 0;
}

void crash_meant(struct thread *t, int sig, bool meant)
{
	uint32_t bit = crash_signal(sig) ? 1u << sig : 0;

	t->meant = meant ? t->meant | bit : t->meant & ~bit;
}

bool crash_is(struct thread *t, const uint8_t *info)
{
	return crash_signal(info_int(info, INFO_SIGNO)) && !is_meant(t, info);
}

bool crash_is_last(int sig, const struct action *a)
{
	return crash_signal(sig) && is_handler(a->handler) && a->flags & SA_RESETHAND;
}

/*
 * When the answer comes, another version may lead: what this thread does now is no part of
 * the stream, and the connections are another's, which must not stay open for us.
 */
static void crash_ask(struct thread *t, int sig, uint64_t at, uint64_t place)
{
	MUST(!t->following && (crash_signal(sig) || sig == SIGKILL));
	((struct area *)boot.area)->crash_ns = clock_ns(CLOCK_MONOTONIC);
	request_ring();		/* the monitor wakes while this thread looks */
	standing_begin(t);
	standing_tell(request_of(t)->call);
	request_ask(t, REQ_CRASHED, (uint64_t)sig, at, place);
	standing_end(t);
	crash_leave(t);
}

void crash_leave(struct thread *t)
{
	if (!heir_is())
		return;
	t->has_lane = 0;
	OWN3(__NR_close_range, 3, ~0u, 0);
}

static void crash_place(struct thread *t, const struct gregs *r)
{
	place_note(t, r->rip, r->rsp,
		   (uint64_t[SAVED]){ r->rbx, r->rbp, r->r12, r->r13, r->r14, r->r15 });
}

/* One that tells nothing (an allocator's, the updater) ends the leader as any other does. */
static bool leads_untold(const struct thread *t)
{
	return streams.conduct && !t->has_lane && !t->following &&
	       CONSUME(conduct_leader, &streams.conduct->leader) == streams.self;
}

void crash_tell(struct thread *t, int sig, uint64_t at, const struct gregs *r)
{
	crash_place(t, r);
	if (signal_leads(t) || leads_untold(t))
		crash_ask(t, sig, at, r->rip);
	else if (t->following)
		request_ask(t, REQ_VERDICT, VERDICT_CRASHED, (uint64_t)sig, at);
	else if (t->update)	/* a twin that changes; of others nobody is told */
		request_ask(t, REQ_UPDATE, UPDATE_DIES, (uint64_t)sig, at);
}

/* --- calls ---------------------------------------------------------------------------- */

static bool is_ours(const struct thread *t, uint64_t vtid)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o->pid == t->pid && o->vtid == (int32_t)vtid)
			return true;
	return false;
}

/* The signal that the call sends to this process; or 0. */
int crash_sent_to_us(const struct thread *t, long nr, const uint64_t *a)
{
	int32_t pid = (int32_t)a[0];

	switch (nr) {
	case __NR_kill:
		return pid == t->vpid || !pid || pid == -t->vpid ? (int)a[1] : 0;
	case __NR_rt_sigqueueinfo:
		return pid == t->vpid ? (int)a[1] : 0;
	case __NR_tkill:
		return is_ours(t, a[0]) ? (int)a[1] : 0;
	case __NR_tgkill:
	case __NR_rt_tgsigqueueinfo:
		return pid == t->vpid && is_ours(t, a[1]) ? (int)a[2] : 0;
	default:
		return 0;
	}
}

/* Whether it is blocked does not matter: who blocks one of these lets it in at last. */
static bool is_deadly(const struct thread *t, int sig)
{
	struct action a;

	if (sig == SIGKILL)
		return true;
	if (sig < 1 || sig > SIGNALS || !crash_signal(sig))
		return false;
	a = t->sig->action[sig];
	return a.handler == (uint64_t)SIG_DFL || crash_is_last(sig, &a);
}

/* Of the call's signal; whichever thread it would have come to, this one goes no further. */
_Noreturn void crash_die(const struct thread *t, int sig)
{
	struct action dfl = { 0 };
	uint64_t bit = SIG_BIT(sig);

	kernel_action(sig, &dfl);
	OWN4(__NR_rt_sigprocmask, SIG_UNBLOCK, &bit, 0, 8);
	for (;;)
		OWN3(__NR_tgkill, t->pid, t->tid, sig);
}

void crash_offline(struct thread *t, long nr, const uint64_t *args)
{
	int sig = crash_sent_to_us(t, nr, args);

	MUST(!t->has_lane && !t->following);
	if (!is_deadly(t, sig))
		return;
	place_note_call(t);
	request_ask(t, REQ_UPDATE, UPDATE_DIES, (uint64_t)sig, 0);
	crash_die(t, sig);
}

bool crash_call(struct thread *t, long nr, const uint64_t *args)
{
	int sig = crash_sent_to_us(t, nr, args);
	bool asks = stream_followed(t), dies;

	if (!is_deadly(t, sig))
		return false;
	place_note_call(t);
	if (asks)
		crash_ask(t, sig, 0, t->frame.site_end);
	dies = !is_handler(t->sig->action[sig].handler);
	if (dies)
		robust_leave(t);
	if (asks && dies && !t->has_lane)
		crash_die(t, sig);
	return asks && !t->has_lane;
}

bool crash_cuts(struct thread *t)
{
	int sig = info_int(t->held_info, INFO_SIGNO);

	if (!t->pending || !crash_signal(sig))
		return false;
	if (is_deadly(t, sig))
		return true;
	if (crash_is(t, t->held_info))
		fault_mark(t);
	return false;
}

void crash_sent(const struct thread *t, long nr, const uint64_t *args)
{
	if (crash_signal(crash_sent_to_us(t, nr, args)))
		fault_sent();
}

static int64_t signal_of(const struct event *e)
{
	const struct call_desc *d = call_find(e->call);

	for (unsigned i = 0; call_has(d, TRAIT_SIGNALS) && i < d->nargs; i++)
		if (d->args[i].kind == KIND_SIG)
			return (int64_t)e->arg[i];
	return 0;
}

bool crash_was_sent(const struct event *e)
{
	return e->kind == EVENT_CALL && crash_signal((int)signal_of(e));
}

bool crash_exits(struct thread *t)
{
	if (!t->faulting)
		return false;
	place_note_call(t);
	crash_ask(t, t->fault_sig, 0, t->frame.site_end);
	return !t->has_lane;
}
