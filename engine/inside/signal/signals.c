/*
 * Signals.  The inside owns every handler: the kernel delivers each signal that
 * the program handles to signal_handle, on a stack of ours with everything
 * blocked, and what happens then depends on where the thread was.
 *
 * - In the program: its handler is given the same frame that the kernel would
 *   have built, on the stack it asked for, and the kernel's own sigreturn starts
 *   it with the right mask (deliver).
 * - On the gate's short way: the same, after the thread has been taken out of
 *   the gate, to just before its call or just behind it (gate_leave).
 * - In C code of the inside (busy): the signal is held.  Its siginfo is noted,
 *   everything stays blocked, and at the end of the call signal_exit has it come
 *   with the program's registers, by a fault of its own (at_boundary): a signal
 *   that was queued again would come behind its likes.  A call that had not begun
 *   when the signal came is made again afterwards.
 * - SIGSYS of the dispatch and SIGILL of a mark are no signals of the program's:
 *   the thread is sent to the gate.  SIGSEGV on a watched page breaks the seal.
 *
 * The program's alternate stack and its idea of those three being blocked (the
 * hidden signals) are only noted here; the kernel knows our alternate stack, and
 * never blocks them.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>
#include <linux/time.h>

#include "engine/core/host.h"
#include "engine/core/must.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/crash/failed.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/gate/ways.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/locks/locks.h"
#include "engine/inside/rollback/rollback.h"
#include "engine/inside/rules/follow_rules.h"
#include "engine/inside/rules/overdue.h"
#include "engine/inside/signal/caught.h"
#include "engine/inside/signal/hidden.h"
#include "engine/inside/signal/insn.h"
#include "engine/inside/signal/leave.h"
#include "engine/inside/signal/sigcalls.h"
#include "engine/inside/signal/sigframe.h"
#include "engine/inside/signal/signals.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/early.h"
#include "engine/inside/state/ids.h"

#define FLAGS_CLEARED	0x10500ull	/* TF, DF, RF at a handler's entry */

extern char handler_asked[];
_Noreturn void held_come_here(void);

/* --- delivery to the program ------------------------------------------- */

static uint64_t handler_mask(struct thread *t, int sig, const struct action *a,
			     uint64_t interrupted)
{
	uint64_t mask = (t->has_temp_mask ? t->temp_mask : interrupted) | a->mask;

	MUST(sig >= 1 && sig <= SIGNALS);

	if (!(a->flags & SA_NODEFER))
		mask |= SIG_BIT(sig);
	return mask & ~HIDDEN_SIGNALS;
}

/* Turns our own frame into one that starts the program's handler; false: it has no room. */
static bool handler_start(struct thread *t, int sig, const struct action *a,
			  const uint8_t *info, struct ucontext_raw *uc)
{
	uint64_t at = frame_build(t, a, info, uc);
	struct rt_frame *f = (struct rt_frame *)at;

	if (!at)
		return false;
	uc->fpstate = 0;	/* a handler begins with a fresh one */
	if (t->alt.flags & AUTODISARM) {
		t->alt.sp = t->alt.size = 0;
		t->alt.flags = SS_DISABLE;
	}
	if (t->has_temp_mask)
		t->hidden_blocked = t->temp_mask & HIDDEN_SIGNALS;
	t->hidden_blocked |= a->mask & HIDDEN_SIGNALS;
	if (!(a->flags & SA_NODEFER))
		t->hidden_blocked |= SIG_BIT(sig) & HIDDEN_SIGNALS;
	uc->mask = handler_mask(t, sig, a, uc->mask);
	uc->regs.rip = a->handler;
	uc->regs.rsp = at;
	uc->regs.rdi = (uint64_t)sig;
	uc->regs.rsi = (uint64_t)f->info;
	uc->regs.rdx = (uint64_t)&f->uc;
	uc->regs.rax = 0;
	uc->regs.flags &= ~FLAGS_CLEARED;
	t->has_temp_mask = 0;
	return true;
}

/*
 * TSan's handler puts the program's off to the end of an interceptor, where its leader's
 * has long run.  So TSan's sigaction is asked for the program's, on the program's stack,
 * and that is called (handler_asked, gate.S).
 */
static bool handler_ask(struct thread *t, int sig, const struct action *a, const uint8_t *info,
			struct ucontext_raw *uc)
{
	struct action own = *a, ask = { boot.sigaction, SA_NODEFER, a->restorer, 0 };
	uint64_t old;

	own.handler = (uint64_t)handler_asked;
	if (!handler_start(t, sig, &own, info, uc))
		return false;
	old = uc->regs.rsp -= HANDLER_ROOM;
	bytes_zero((void *)old, HANDLER_ROOM);
	if (!handler_start(t, sig, &ask, info, uc))
		return false;
	uc->regs.rsi = 0;
	uc->regs.rdx = old;
	t->asked = a->handler;
	t->asks++;
	return true;
}

static bool is_put_off(const struct thread *t)
{
	const struct conduct *c = streams.conduct;

	return boot.sigaction && t->following && !(c->puts_off >> c->leader & 1);
}

/* TSan asks the kernel, too, before it says what its handler stands for. */
bool signal_asks(struct thread *t, long nr, long *result)
{
	const struct frame *f = &t->frame;
	struct action of_runtime = { .handler = t->asked };

	if (!t->asks || nr != __NR_rt_sigaction || f->rsi)
		return false;
	t->asks--;
	t->answered = 1;
	*result = target_out(f->rdx, &of_runtime, sizeof(of_runtime)) ? -EFAULT : 0;
	return true;
}

static bool is_fault(int sig, const uint8_t *info)
{
	bool kind = sig == SIGSEGV || sig == SIGBUS || sig == SIGILL ||
		    sig == SIGFPE || sig == SIGTRAP;

	return kind && info_int(info, INFO_CODE) > 0;
}

/* The kernel forces it on a thread that blocks or ignores it, and it is deadly then. */
static bool is_forced(int sig, const uint8_t *info)
{
	return is_fault(sig, info) ||
	       (sig == SIGSYS && info_int(info, INFO_CODE) == SECCOMP_CODE);
}

static uint64_t fault_address(int sig, const uint8_t *info)
{
	return is_fault(sig, info) ? info_long(info, INFO_ADDR) : 0;
}

/*
 * The default action of a signal that reached us all the same: let it act.  A
 * fault comes again by itself, where it was, but for one that is another's (insn_faults).
 */
static void default_act(struct thread *t, int sig, const uint8_t *info,
			struct ucontext_raw *uc, bool crash)
{
	if (crash)
		crash_tell(t, sig, fault_address(sig, info), &uc->regs);
	default_restore(sig);
	if (!is_fault(sig, info) || info_int(info, INFO_CODE) == SI_KERNEL)
		OWN3(__NR_tgkill, t->pid, t->tid, sig);
	uc->mask &= ~SIG_BIT(sig);
}

static void signal_trace(struct thread *t, const uint8_t *info)
{
	_Static_assert(sizeof(request_of(t)->call) <= SIGINFO_SIZE, "no more than there is");
	bytes_copy(request_of(t)->call, info, sizeof(request_of(t)->call));
	request_tell(t, REQ_TRACE_SIGNAL, 0, 0);
}

/*
 * Others that wait in the kernel, and come when this one's handler begins: to the
 * program all came together, and so they do in followers.
 */
static bool others_come(struct thread *t, uint64_t mask)
{
	uint64_t waiting = 0;

	if (t->joined >= SIGNALS_NEXT || OWN2(__NR_rt_sigpending, &waiting, 8) < 0)
		return false;
	waiting &= ~mask & ~HIDDEN_SIGNALS;
	for (; waiting; waiting &= waiting - 1)
		if (is_handler(t->sig->action[__builtin_ctzll(waiting) + 1].handler))
			return true;
	return false;
}

static void signal_tell(struct thread *t, int sig, const struct action *a, const uint8_t *info,
			uint64_t mask, bool meant)
{
	MUST(t->joined <= SIGNALS_NEXT);
	bool more = others_come(t, handler_mask(t, sig, a, mask));

	t->entered = more ? a->handler : 0;
	t->joined = more ? t->joined + 1 : 0;
	lead_signal(t, info, (more ? EVENT_SIGNAL_NEXT : 0) | (meant ? EVENT_MEANT : 0));
}

static void deliver(struct thread *t, int sig, const uint8_t *info,
		    struct ucontext_raw *uc);

/* As in the kernel it is a SIGSEGV, and the end where that is the one without a frame. */
static void frame_failed(struct thread *t, int sig, struct ucontext_raw *uc)
{
	struct { int32_t signo, error, code; uint8_t rest[SIGINFO_SIZE - 12]; } fault = {
		.signo = SIGSEGV, .code = SI_KERNEL };

	if (sig == SIGSEGV) {
		sighand_take(t->sig);
		action_reset(t, sig);
		sighand_give(t->sig);
	}
	deliver(t, SIGSEGV, (const uint8_t *)&fault, uc);
}

static void handler_enter(struct thread *t, int sig, const struct action *a, const uint8_t *info,
			  struct ucontext_raw *uc, bool crash)
{
	bool ask = is_put_off(t) && !is_fault(sig, info);
	struct altstack alt = t->alt;

	if (!(ask ? handler_ask : handler_start)(t, sig, a, info, uc))
		frame_failed(t, sig, uc);
	else if (crash)
		fault_begin(t, sig, &alt, uc->regs.rsp);
	rollback_handler(t, true);
}

static void deliver(struct thread *t, int sig, const uint8_t *info,
		    struct ucontext_raw *uc)
{
	bool crash = crash_is(t, info);
	uint8_t seen[SIGINFO_SIZE];
	struct action a;

	MUST(sig >= 1 && sig <= SIGNALS && !t->latches);
	t->owed &= ~SIG_BIT(sig);
	if (crash && rollback_fault(t, sig, fault_address(sig, info), &uc->regs)) {
		uc->fpstate = 0;
		return;
	}

	if (t->has_lane && !t->following && !ids_are_ours()) {
		bytes_copy(seen, info, sizeof(seen));
		ids_info(seen);
		info = seen;
	}
	sighand_take(t->sig);
	a = t->sig->action[sig];
	if (a.flags & SA_RESETHAND && is_handler(a.handler))
		action_reset(t, sig);
	sighand_give(t->sig);
	if (is_forced(sig, info) &&
	    (t->hidden_blocked & SIG_BIT(sig) || a.handler == (uint64_t)SIG_IGN))
		a.handler = (uint64_t)SIG_DFL;
	/* What else than a fault comes to a follower its leader went on with: the stream has it. */
	if (crash && crash_is_last(sig, &a) && (!t->following || is_fault(sig, info)))
		crash_tell(t, sig, fault_address(sig, info), &uc->regs);
	if (is_handler(a.handler) && boot.role == ROLE_TRACE)
		signal_trace(t, info);
	if (is_handler(a.handler) && crash)
		fault_mark(t);
	/* A fault is the version's own: a twin has it, too. */
	if (is_handler(a.handler) && signal_leads(t) && !is_fault(sig, info))
		signal_tell(t, sig, &a, info, uc->mask, crash_signal(sig) && !crash);
	if (is_handler(a.handler))
		handler_enter(t, sig, &a, info, uc, crash);
	else if (a.handler == (uint64_t)SIG_DFL)
		default_act(t, sig, info, uc, crash);
}

/* --- where the thread was ------------------------------------------------ */

/* All others are blocked while one is held or deferred: it comes behind that one's handler. */
static void hidden_hold(struct thread *t, const uint8_t *info)
{
	int sig = info_int(info, INFO_SIGNO);

	bytes_copy(hidden_info(t, sig), info, SIGINFO_SIZE);
	t->hidden_waits |= SIG_BIT(sig);
}

/* Notes a signal that came while C code of the inside ran. */
static void hold(struct thread *t, const uint8_t *info, struct ucontext_raw *uc)
{
	struct area *a = (struct area *)boot.area;

	MUST(t->busy);
	if (t->pending || t->deferred) {
		hidden_hold(t, info);
		return;
	}
	bytes_copy(t->held_info, info, SIGINFO_SIZE);
	t->held_mask = uc->mask;
	t->pending = 1;
	uc->mask = ALL_SIGNALS & ~HIDDEN_SIGNALS;
	window_leave(&uc->regs.rip);
	__atomic_fetch_add(&a->signals_held, 1, __ATOMIC_RELAXED);
}

static void registers_from_frame(struct gregs *r, const struct frame *f)
{
	r->rax = f->rax;
	r->rdi = f->rdi;
	r->rsi = f->rsi;
	r->rdx = f->rdx;
	r->r10 = f->r10;
	r->r8 = f->r8;
	r->r9 = f->r9;
	r->rbx = f->rbx;
	r->rbp = f->rbp;
	r->r12 = f->r12;
	r->r13 = f->r13;
	r->r14 = f->r14;
	r->r15 = f->r15;
	r->rsp = f->rsp;
	r->flags = f->flags;
	r->r11 = f->flags;
}

/* Where the rt_sigreturn that is not made leads to; false: it has another form of frame. */
static bool returned_context(struct thread *t, struct ucontext_raw *uc)
{
	struct ucontext_raw to;

	if (target_in(&to, t->frame.rsp, sizeof(to)) ||
	    !frame_fp_take(uc->fpstate, to.fpstate))
		return false;
	frame_settle(t, &to);
	uc->regs = to.regs;
	uc->mask = to.mask & ~HIDDEN_SIGNALS;
	return true;
}

/* The held signal comes at the end of its call. */
static void boundary_context(struct thread *t, struct ucontext_raw *uc)
{
	MUST(t->at_boundary && t->busy);
	if (t->returning != RETURNS_TO_SIGNAL || !returned_context(t, uc)) {
		registers_from_frame(&uc->regs, &t->frame);
		call_context(&uc->regs, t->frame.resume, t->tier, !t->restart);
		uc->mask = t->held_mask;
	}
	t->returning = t->announced = 0;
	t->at_boundary = 0;
	t->pending = 0;
	t->restart = 0;
	t->busy = 0;
}

/* A trap of the program's own seccomp filter: name its site, not the gate. */
static void call_address_mend(uint8_t *info, const struct ucontext_raw *uc)
{
	extern char gate_patch_start[], gate_net_end[];
	uint64_t *addr = (uint64_t *)(info + INFO_CALL_ADDR);

	if (*addr >= (uint64_t)gate_patch_start && *addr < (uint64_t)gate_net_end)
		*addr = uc->regs.rip;
}

/*
 * In the program, a leader's signal waits for the next boundary, which followers
 * can tell.  Only a call that is no event is cut short, as natively; but within a
 * lock's function, whose event comes soon: others may rely on that it was passed.
 */
static bool defer(struct thread *t, const uint8_t *info, struct ucontext_raw *uc)
{
	if (t->deferred) {
		hidden_hold(t, info);
		return true;
	}
	if (!signal_leads(t) ||
	    (in_short_call(uc->regs.rip) && !lock_is_led(uc->regs.rsp)) || !overdue_begin(t))
		return false;
	MUST(!t->pending);
	bytes_copy(t->held_info, info, SIGINFO_SIZE);
	t->held_mask = uc->mask;
	t->deferred = 1;
	uc->mask = ALL_SIGNALS & ~HIDDEN_SIGNALS;
	return true;
}

/* The signal has waited long enough: it comes where the thread is now. */
void signal_overdue(struct thread *t, struct ucontext_raw *uc)
{
	if (!t->deferred || t->busy) {
		if (t->deferred)
			overdue_begin(t);
		call_again(t, &uc->regs);	/* it is on its way, or this is a local call */
		return;
	}
	if (!in_short_call(uc->regs.rip) && overdue_again(t)) {
		call_again(t, &uc->regs);
		return;
	}
	t->deferred = 0;
	uc->mask = t->held_mask;
	gate_leave(t, &uc->regs);
	deliver(t, info_int(t->held_info, INFO_SIGNO), t->held_info, uc);
}

/*
 * The stream brings what a follower's threads hear.  A task that a runtime made for itself has
 * none: LSan's waits for the threads that it stops, and must not run a handler that waits, too.
 */
static bool is_dropped(const struct thread *t)
{
	return t->following || (signals_are_deaf && !t->has_lane);
}

static void held_come(struct thread *t, struct ucontext_raw *uc)
{
	int sig = info_int(t->held_info, INFO_SIGNO);

	boundary_context(t, uc);
	MUST(t->nexts <= SIGNALS_NEXT);
	if (sig == SIGSYS)
		call_address_mend(t->held_info, uc);
	deliver(t, sig, t->held_info, uc);
	for (uint32_t i = 0; t->following && i < t->nexts; i++) {
		uint8_t next[SIGINFO_SIZE] = { 0 };

		bytes_copy(next, t->next_info[i], SIGINFO_USED);
		deliver(t, info_int(next, INFO_SIGNO), next, uc);
	}
	t->nexts = 0;
}

/* Every signal enters here, from signal_entry. */
void signal_handle(int sig, uint8_t *info, struct ucontext_raw *uc)
{
	struct thread *t = thread_self();

	if (uc->regs.rip == (uint64_t)held_come_here && sig == SIGILL && is_fault(sig, info)) {
		held_come(t, uc);
		return;
	}
	if (is_fault(sig, info) && (copy_failed_at(&uc->regs) || counter_failed_at(&uc->regs)))
		return;
	if ((is_fault(sig, info) || sig == SIGSYS) && rules_left(t, &uc->regs, sig))
		return;
	if (!insn_faults(t, &sig, info, uc) && hidden_serve(t, sig, info, uc))
		return;
	if (is_dropped(t) && !is_fault(sig, info)) {
		if (early_may_come())
			early_note(t, info);
		return;
	}
	if (t->busy) {
		if (!is_fault(sig, info))
			hold(t, info, uc);
		else if (!failed_fault(t, sig, fault_address(sig, info), uc))
			default_restore(sig);	/* our bug: die where it is */
		return;
	}
	sigreturn_leave(t, &uc->regs);
	if (!is_fault(sig, info) && uc->regs.rip != t->entered && defer(t, info, uc))
		return;
	gate_leave(t, &uc->regs);
	if (sig == SIGSYS)
		call_address_mend(info, uc);
	deliver(t, sig, info, uc);
}

/* --- the end of a call that a signal waits for ------------------------------ */

/*
 * Followers hear of it at the next call that they know; to stand still is not theirs to hear, and
 * where nobody would look after it it comes at once.
 */
bool signal_waits_on(struct thread *t)
{
	return signal_leads(t) && info_int(t->held_info, INFO_SIGNO) && overdue_begin(t);
}

/* Has the held signal come (held_come); returns where none is to. */
void signal_exit(struct thread *t)
{
	MUST(t->busy && !t->at_boundary);
	/*
	 * Followers know nothing of this call: the next that they know must do; but where it has
	 * cut the call short its handler runs before the program sees that.
	 */
	if (signal_leads(t) && !t->restart && !t->announced && t->frame.rax != (uint64_t)-EINTR &&
	    overdue_begin(t)) {
		turn_begin(t);
		t->pending = 0;
		t->deferred = 1;
		turn_end(t);
		return;
	}
	sigreturn_undo(t);
	t->at_boundary = 1;	/* a hidden signal is not blocked even here */
	held_come_here();
}
