/*
 * The calls that are about signals.  What the program asks for and what the
 * kernel is told differ in two things: handlers are ours, and the alternate
 * stack is ours; the program's own are kept here and given back when it asks.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/core/walk.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/order/follow_signal.h"
#include "engine/inside/order/wait.h"
#include "engine/inside/rules/overdue.h"
#include "engine/inside/rollback/rollback.h"
#include "engine/inside/signal/hidden.h"
#include "engine/inside/signal/sigcalls.h"
#include "engine/inside/signal/sigframe.h"
#include "engine/inside/signal/signals.h"
#include "engine/inside/signal/ucontext.h"

/* The flags that the kernel keeps: those of include/uapi/asm-generic/signal-defs.h. */
#define ACTION_FLAGS	(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | \
			 SA_NODEFER | SA_RESETHAND | SA_EXPOSE_TAGBITS | SA_RESTORER)

long serve_sigaction(struct thread *t)
{
	const struct frame *f = &t->frame;
	int sig = (int)f->rdi;
	struct action new = { 0 }, old, kernel;
	long result = 0;

	t->answered = 1;
	if (f->r10 != 8)
		return -EINVAL;
	if (f->rsi && target_in(&new, f->rsi, sizeof(new)))
		return -EFAULT;
	if (sig < 1 || sig > SIGNALS || (f->rsi && (sig == SIGKILL || sig == SIGSTOP)))
		return -EINVAL;
	new.flags &= ACTION_FLAGS;
	new.mask &= ~(SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP));
	sighand_take(t->sig);
	old = t->sig->action[sig];
	if (f->rsi) {
		/* A handler must be known before it can be called. */
		t->sig->action[sig] = new;
		kernel = action_for_kernel(sig, &new);
		result = kernel_action(sig, &kernel);
	}
	sighand_give(t->sig);
	if (f->rsi && new.handler == (uint64_t)SIG_IGN)
		hidden_forget(t, sig);
	if (!result && f->rdx && target_out(f->rdx, &old, sizeof(old)))
		return -EFAULT;
	return result;
}

/*
 * The kernel does the program's call as it is; if a hidden signal is blocked
 * now, no code of the program has run since, and it is taken out again.
 */
long serve_sigprocmask(struct thread *t)
{
	uint64_t hidden = HIDDEN_SIGNALS, now = 0, set = 0, old, was = t->hidden_blocked;
	uint64_t how = t->frame.rdi, old_at = t->frame.rdx;
	long result = call_kernel(t);

	if (result == CALL_RESTART || result < 0)
		return result;
	if (t->frame.rsi) {
		OWN4(__NR_rt_sigprocmask, SIG_UNBLOCK, &hidden, &now, 8);
		if (t->pending)
			now = t->held_mask;
		t->held_mask &= ~hidden;
		if (how == SIG_UNBLOCK && was && target_in(&set, t->frame.rsi, 8))
			set = 0;
		hidden_block(t, how == SIG_SETMASK ? now & hidden
			      : how == SIG_BLOCK ? was | (now & hidden) : was & ~set);
	}
	if (was && old_at && !target_in(&old, old_at, 8)) {
		old |= was;
		target_out(old_at, &old, 8);
	}
	return result;
}

/*
 * A call that takes a set of signals at *set_at: the kernel gets it without the
 * hidden ones, which it must neither block nor hand out.
 */
static long call_with_set(struct thread *t, uint64_t *set_at, uint64_t set)
{
	uint64_t was = *set_at;
	long result;

	t->kernel_mask = set & ~HIDDEN_SIGNALS;
	*set_at = (uint64_t)&t->kernel_mask;
	result = call_kernel(t);
	*set_at = was;
	return result;
}

/* What waits with us is not with the kernel. */
long serve_sigpending(struct thread *t)
{
	uint64_t at = t->frame.rdi, set = 0;
	long result = call_kernel(t);

	if (result || !t->hidden_waits || t->frame.rsi != 8 || target_in(&set, at, 8))
		return result;
	set |= t->hidden_waits;
	return target_out(at, &set, 8);
}

/* A call that blocks under a mask of its own, whose address is at `mask_at`. */
long serve_masked(struct thread *t, uint64_t *mask_at)
{
	long result;

	if (!*mask_at || target_in(&t->temp_mask, *mask_at, 8))
		return call_kernel(t);
	t->has_temp_mask = 1;
	/* One that waits with us and not with the kernel cuts the call short at once. */
	if (hidden_come(t, ~t->temp_mask) && t->pending)
		return -EINTR;
	result = call_with_set(t, mask_at, t->temp_mask);
	/* The handler of a signal that cut the call short runs under it. */
	if (!t->pending || result != -EINTR)
		t->has_temp_mask = 0;
	return result;
}

/* pselect6's last argument points at the mask's address and size. */
long serve_pselect(struct thread *t)
{
	uint64_t was = t->frame.r9, pair[2];
	long result;

	if (!was || target_in(pair, was, sizeof(pair)))
		return call_kernel(t);
	t->frame.r9 = (uint64_t)pair;
	result = serve_masked(t, &pair[0]);
	t->frame.r9 = was;
	return result;
}

/* signalfd, signalfd4: a hidden signal is never taken from there. */
long serve_signalfd(struct thread *t)
{
	uint64_t set;

	if (target_in(&set, t->frame.rsi, 8))
		return call_kernel(t);
	return call_with_set(t, &t->frame.rsi, set);
}

/* rt_sigtimedwait: a hidden signal that waits is with us, not with the kernel. */
long serve_sigtimedwait(struct thread *t)
{
	uint64_t set = 0, at = t->frame.rsi;
	long result = -EINTR;
	int sig;

	if (target_in(&set, t->frame.rdi, 8))
		return call_kernel(t);
	if (!(set & t->hidden_waits))
		result = call_with_set(t, &t->frame.rdi, set);
	if (result != -EINTR || !(set & t->hidden_waits))
		return result;
	sig = __builtin_ctzll(set & t->hidden_waits) + 1;
	t->answered = 1;
	t->hidden_waits &= ~SIG_BIT(sig);
	if (at && target_out(at, hidden_info(t, sig), SIGINFO_SIZE))
		return -EFAULT;
	return sig;
}

/* A thread whose stack pointer is `sp` wants this alternate stack. */
static long altstack_set(struct thread *t, struct altstack new, uint64_t sp)
{
	int32_t mode = new.flags & ~AUTODISARM;

	if (!(t->alt.flags & AUTODISARM) && on_stack(&t->alt, sp))
		return -EPERM;
	if (mode != SS_ONSTACK && mode != SS_DISABLE && mode != 0)
		return -EINVAL;
	if (mode == SS_DISABLE)
		new.sp = new.size = 0;
	else if (new.size < MINSIGSTKSZ)
		return -ENOMEM;
	t->alt = new;
	return 0;
}

long serve_sigaltstack(struct thread *t)
{
	const struct frame *f = &t->frame;
	bool on = on_stack(&t->alt, f->rsp) && !(t->alt.flags & AUTODISARM);
	struct altstack new, old = t->alt;
	long result = 0;

	t->answered = 1;
	old.pad = 0;
	old.flags = (t->alt.flags & AUTODISARM) |
		    (on ? SS_ONSTACK : t->alt.size ? 0 : SS_DISABLE);
	if (f->rdi)
		result = target_in(&new, f->rdi, sizeof(new)) ? -EFAULT :
			 altstack_set(t, new, f->rsp);
	return !result && f->rsi && target_out(f->rsi, &old, sizeof(old)) ? -EFAULT : result;
}

/*
 * A leader's signal that came in a handler waits for the next call that followers look
 * at, which this is not; but where it would be blocked it comes now.  False: it does.
 */
static bool signal_waits_for(struct thread *t, uint64_t mask)
{
	int sig = info_int(t->held_info, INFO_SIGNO);

	MUST(!(t->pending && t->deferred));

	if (!t->pending && !t->deferred)
		return true;
	if (signal_leads(t) && !t->park && !(mask & SIG_BIT(sig)) &&
	    (t->deferred || overdue_begin(t))) {
		t->deferred = 1;
		t->pending = 0;
		return true;
	}
	if (t->deferred)
		overdue_end(t);
	t->deferred = 0;
	t->pending = 1;
	return false;
}

static bool signal_waits(struct thread *t, uint64_t mask)
{
	bool waits;

	turn_begin(t);
	waits = signal_waits_for(t, mask);
	turn_end(t);
	return waits;
}

static bool is_alone(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid)
			return false;
	return true;
}

/* Of two ids the second is the thread's. */
static bool names_itself(const struct thread *t, const struct walk *w)
{
	int32_t id = 0;

	for (unsigned i = 0; i < w->desc->nargs; i++)
		if (w->desc->args[i].kind == KIND_PID)
			id = (int32_t)w->args[i];
	return id == t->vtid;
}

void signal_owe(struct thread *t, const struct walk *w)
{
	int sig = crash_sent_to_us(t, w->desc->nr, w->args);
	uint64_t mask = 0;

	if (sig <= 0 || sig > SIGNALS || !is_handler(t->sig->action[sig].handler) ||
	    !(is_alone(t) || names_itself(t, w)))
		return;
	OWN4(__NR_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
	t->owed |= ((mask & ~HIDDEN_SIGNALS) | t->hidden_blocked) & SIG_BIT(sig);
}

/* Of those that `mask` lets in; in a follower the one that its leader was told of. */
static bool owed_take(struct thread *t, uint64_t mask)
{
	const struct __kernel_timespec now = { 0 };
	uint64_t set = t->owed & ~mask, hidden = set & t->hidden_waits;
	const struct event *e;
	int sig;

	if (t->following) {
		e = follow_event(t);
		if (e && e->kind == EVENT_SIGNAL)
			follow_signal(t, e);
		return e && t->pending;
	}
	sig = hidden ? __builtin_ctzll(hidden) + 1 : 0;
	t->hidden_waits &= ~(hidden & -hidden);
	if (sig)
		bytes_copy(t->held_info, hidden_info(t, sig), SIGINFO_SIZE);
	else if (OWN4(__NR_rt_sigtimedwait, &set, t->held_info, &now, 8) <= 0)
		return false;
	t->pending = 1;
	return true;
}

/*
 * A handler has sent its thread a signal that is blocked while it runs.  Natively that comes
 * when the handler is over, before the program does anything else, and programs rely on it:
 * it must not wait for the next call that followers know, so that they know of this one.  An
 * rt_sigreturn where a signal comes is not made: its frame is what the signal finds.
 */
static bool owed_come(struct thread *t, uint64_t mask)
{
	bool ours = t->following || signal_leads(t);

	if (!ours || !(t->owed & ~mask) || t->pending || t->deferred || t->park)
		return false;
	if (!owed_take(t, mask)) {
		t->owed &= mask;
		return false;
	}
	t->returning = RETURNS_TO_SIGNAL;
	return true;
}

void frame_settle(struct thread *t, const struct ucontext_raw *uc)
{
	if (uc->stack.sp != (uint64_t)t + BLOCK_SIGSTACK)
		altstack_set(t, uc->stack, uc->regs.rsp);
	hidden_block(t, uc->mask & HIDDEN_SIGNALS);
}

void sigreturn_undo(struct thread *t)
{
	uint64_t at = t->frame.rsp, mask_at = at + offsetof(struct ucontext_raw, mask), mask;

	if (t->returning != RETURNS)
		return;
	if (!target_in(&mask, mask_at, sizeof(mask))) {
		mask = (t->deferred ? t->held_mask : mask) | (t->hidden_blocked & HIDDEN_SIGNALS);
		target_out(at + offsetof(struct ucontext_raw, stack), &t->alt, sizeof(t->alt));
		target_out(mask_at, &mask, sizeof(mask));
	}
	--t->counts[t->tier * SLOT_CALLS + t->call_slot];	/* it comes again */
	t->returning = 0;
}

/*
 * The frame lies at the program's rsp.  What it says of the alternate stack is
 * taken over, ours is put in its place, and the kernel does the rest.
 */
long serve_sigreturn(struct thread *t)
{
	struct altstack ours = { (uint64_t)t + BLOCK_SIGSTACK, 0, 0,
				 BLOCK_SIGSTACK_SIZE };
	struct ucontext_raw uc = { 0 };
	uint64_t at = t->frame.rsp;
	bool read = !target_in(&uc, at, sizeof(uc));

	t->returning = 0;
	if ((read && owed_come(t, uc.mask)) || !signal_waits(t, uc.mask))
		return CALL_RESTART;
	if (read) {
		frame_settle(t, &uc);
		uc.mask &= ~HIDDEN_SIGNALS;
		if (t->deferred) {
			t->held_mask = uc.mask;
			uc.mask = ALL_SIGNALS & ~HIDDEN_SIGNALS;
		}
		target_out(at + offsetof(struct ucontext_raw, stack), &ours, sizeof(ours));
		target_out(at + offsetof(struct ucontext_raw, mask), &uc.mask, 8);
	}
	MUST(!t->at_boundary && !t->latches);
	rollback_handler(t, false);
	t->returning = RETURNS;
	t->restart = 1;		/* if a signal comes before the kernel has it */
	sigreturn_exit();
}
