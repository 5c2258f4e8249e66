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
 *   everything stays blocked, and at the end of the call signal_exit queues it
 *   again, to be delivered with the program's registers (at_boundary).  A call
 *   that had not begun when the signal came is made again afterwards.
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

#include "engine/inside/ucontext.h"

#define DISPATCH_CODE	2	/* si_code SYS_USER_DISPATCH */
#define SECCOMP_CODE	1	/* si_code SYS_SECCOMP */
#define ARCH_X86_64	((int32_t)0xc000003e)
#define VSYSCALL_PAGE	0xffffffffff600000ull
#define RED_ZONE	128
#define FLAGS_CLEARED	0x10500ull	/* TF, DF, RF at a handler's entry */
#define AUTODISARM	((int32_t)(1u << 31))
#define ALT_FLAGS	(SS_ONSTACK | SS_DISABLE | AUTODISARM)

struct sighand process_sig;

#define SYSCALL_BYTES	0x050f	/* the instruction, as it is read */
#define PREFIXES_MAX	4
#define JUMP		0xe9	/* the first byte of a patched site */
#define HOT_CALLS	1000	/* trapped calls after which a site is patched */

extern char signal_entry[], signal_restorer[], gate_net[], held_exit[];
extern char call_interrupted[];

void sighand_lock(struct sighand *s)
{
	/* Acquire: pairs with the release in sighand_unlock. */
	while (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
		OWN0(__NR_sched_yield);
}

void sighand_unlock(struct sighand *s)
{
	/* Release: publishes the table to the next holder. */
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

static bool is_handler(uint64_t handler)
{
	return handler != (uint64_t)SIG_DFL && handler != (uint64_t)SIG_IGN;
}

static long kernel_action(int sig, const struct action *a)
{
	return OWN4(__NR_rt_sigaction, sig, a, 0, 8);
}

/* The action that the kernel gets for one of the program's. */
static struct action action_for_kernel(int sig, const struct action *a)
{
	struct action k = *a;

	if (!(HIDDEN_SIGNALS & SIG_BIT(sig)) && !is_handler(a->handler))
		return k;
	k.handler = (uint64_t)signal_entry;
	k.restorer = (uint64_t)signal_restorer;
	k.mask = ALL_SIGNALS;
	k.flags &= SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT;
	k.flags |= SA_SIGINFO | SA_ONSTACK | 0x04000000 /* SA_RESTORER */;
	return k;
}

/* What SA_RESETHAND does. */
static void action_reset(struct thread *t, int sig)
{
	struct action dfl = { 0 }, kernel = action_for_kernel(sig, &dfl);

	t->sig->action[sig] = dfl;
	kernel_action(sig, &kernel);
}

/* The signal's default action is to act, even for SIGSYS. */
static void default_restore(int sig)
{
	struct action dfl = { 0 };

	kernel_action(sig, &dfl);
}

/* clone with CLONE_CLEAR_SIGHAND: handlers become defaults, ignored stay. */
void sighand_clear(struct sighand *s)
{
	struct action dfl = { 0 };

	for (int sig = 1; sig <= SIGNALS; sig++)
		if (is_handler(s->action[sig].handler))
			s->action[sig] = dfl;
}

/* Readies this thread for signals: our alternate stack, the hidden signals. */
void signals_start(struct thread *t)
{
	struct altstack ours = { (uint64_t)t + BLOCK_SIGSTACK, 0, 0,
				 BLOCK_SIGSTACK_SIZE };
	struct action none = { 0 }, sys = action_for_kernel(SIGSYS, &none);
	uint64_t hidden = HIDDEN_SIGNALS;

	OWN2(__NR_sigaltstack, &ours, 0);
	kernel_action(SIGSYS, &sys);
	kernel_action(SIGILL, &sys);
	kernel_action(SIGSEGV, &sys);
	OWN4(__NR_rt_sigprocmask, SIG_UNBLOCK, &hidden, 0, 8);
}

/* --- delivery to the program ------------------------------------------- */

static bool on_stack(const struct altstack *a, uint64_t sp)
{
	return sp > a->sp && sp - a->sp <= a->size;
}

static uint64_t fp_size(uint64_t fpstate)
{
	const uint8_t *fp = (const uint8_t *)fpstate;

	if (!fpstate)
		return 0;
	if (*(const uint32_t *)(fp + FP_MAGIC_AT) != FP_MAGIC1)
		return FP_PLAIN_SIZE;
	return *(const uint32_t *)(fp + FP_SIZE_AT);
}

static uint64_t handler_stack(struct thread *t, const struct action *a, uint64_t sp)
{
	bool usable = t->alt.size && !(t->alt.flags & SS_DISABLE);

	if (!(a->flags & SA_ONSTACK) || !usable)
		return sp - RED_ZONE;
	if (!(t->alt.flags & AUTODISARM) && on_stack(&t->alt, sp))
		return sp - RED_ZONE;
	return t->alt.sp + t->alt.size;
}

/* Builds the frame that the kernel would have built; gives its address. */
static uint64_t frame_build(struct thread *t, const struct action *a,
			    const uint8_t *info, const struct ucontext_raw *uc)
{
	uint64_t size = fp_size(uc->fpstate);
	uint64_t fp = (handler_stack(t, a, uc->regs.rsp) - size) & ~63ull;
	uint64_t at = ((fp - sizeof(struct rt_frame)) & ~15ull) - 8;
	struct rt_frame *f = (struct rt_frame *)at;

	bytes_copy((void *)fp, (const void *)uc->fpstate, size);
	f->restorer = a->restorer;
	bytes_copy(&f->uc, uc, sizeof(*uc));
	bytes_copy(f->info, info, SIGINFO_SIZE);
	f->uc.fpstate = size ? fp : 0;
	f->uc.stack = t->alt;
	if (!t->alt.size)
		f->uc.stack.flags = SS_DISABLE;
	f->uc.mask |= t->hidden_blocked;
	return at;
}

static uint64_t handler_mask(struct thread *t, int sig, const struct action *a,
			     uint64_t interrupted)
{
	uint64_t mask = (t->has_temp_mask ? t->temp_mask : interrupted) | a->mask;

	if (!(a->flags & SA_NODEFER))
		mask |= SIG_BIT(sig);
	return mask & ~HIDDEN_SIGNALS;
}

/* Turns our own frame into one that starts the program's handler. */
static void handler_start(struct thread *t, int sig, const struct action *a,
			  const uint8_t *info, struct ucontext_raw *uc)
{
	uint64_t at = frame_build(t, a, info, uc);
	struct rt_frame *f = (struct rt_frame *)at;

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
}

static bool is_fault(int sig, const uint8_t *info)
{
	bool kind = sig == SIGSEGV || sig == SIGBUS || sig == SIGILL ||
		    sig == SIGFPE || sig == SIGTRAP;

	return kind && info_int(info, INFO_CODE) > 0;
}

/*
 * The default action of a signal that reached us all the same: let it act.  A
 * fault comes again by itself, where it was.
 */
static void default_act(struct thread *t, int sig, const uint8_t *info,
			struct ucontext_raw *uc)
{
	default_restore(sig);
	if (!is_fault(sig, info))
		OWN3(__NR_tgkill, t->pid, t->tid, sig);
	uc->mask &= ~SIG_BIT(sig);
}

static void signal_trace(struct thread *t, const uint8_t *info)
{
	bytes_copy(t->slot->request.call, info, sizeof(t->slot->request.call));
	request_tell(t, REQ_TRACE_SIGNAL, 0, 0);
}

static void deliver(struct thread *t, int sig, const uint8_t *info,
		    struct ucontext_raw *uc)
{
	struct action a;

	sighand_lock(t->sig);
	a = t->sig->action[sig];
	if (a.flags & SA_RESETHAND && is_handler(a.handler))
		action_reset(t, sig);
	sighand_unlock(t->sig);
	/* A fault that is blocked or ignored is deadly, as in the kernel. */
	if (is_fault(sig, info) &&
	    (t->hidden_blocked & SIG_BIT(sig) || a.handler == (uint64_t)SIG_IGN))
		a.handler = (uint64_t)SIG_DFL;
	if (is_handler(a.handler) && boot.role == ROLE_TRACE)
		signal_trace(t, info);
	if (is_handler(a.handler))
		handler_start(t, sig, &a, info, uc);
	else if (a.handler == (uint64_t)SIG_DFL)
		default_act(t, sig, info, uc);
}

/* --- where the thread was ------------------------------------------------ */

struct code_range {
	const char *from, *to, *go;
};

/* Sends a thread that stands in a range elsewhere. */
static bool range_redirect(uint64_t *rip, const struct code_range *r)
{
	if (*rip < (uint64_t)r->from || *rip >= (uint64_t)r->to)
		return false;
	*rip = (uint64_t)r->go;
	return true;
}

#define RANGE(n, goes) (&(struct code_range){ n, n##_end, goes })

static void window_leave(uint64_t *rip)
{
	extern char exit_window[], exit_window_end[];
	extern char sigreturn_window[], sigreturn_window_end[];
	extern char call_kernel_patch_window[], call_kernel_patch_window_end[];
	extern char call_kernel_net_window[], call_kernel_net_window_end[];

	if (!range_redirect(rip, RANGE(exit_window, held_exit)) &&
	    !range_redirect(rip, RANGE(sigreturn_window, held_exit)) &&
	    !range_redirect(rip, RANGE(call_kernel_patch_window, call_interrupted)))
		range_redirect(rip, RANGE(call_kernel_net_window, call_interrupted));
}

/* The program's own instruction is whole where a site was patched before it. */
static bool site_whole(uint64_t site_end)
{
	uint16_t call = *(const uint16_t *)(site_end - 2);

	return call == SYSCALL_BYTES || call == MARK_SYSCALL;
}

/*
 * Makes the context one that the program could be in: behind its call, or at
 * it.  Where the jump lies over the call itself there is no such address, and
 * the gate's or the board's must do.
 */
static void call_context(struct gregs *r, uint64_t resume, enum tier tier, bool done)
{
	extern char gate_patch[];
	uint64_t end = tier == TIER_PATCH ? *(uint64_t *)(resume + BOARD_SITE_END) : resume;
	bool whole = site_whole(end);

	r->rcx = whole ? end : resume;
	if (done)
		r->rip = r->rcx;
	else if (whole)
		r->rip = end - 2;
	else
		r->rip = tier == TIER_PATCH ? (uint64_t)gate_patch : (uint64_t)gate_net;
}

/* The gate's labels, in the order of their addresses. */
struct gate_labels {
	const char *entry, *busy, *saved, *call, *after, *restored, *counted, *end;
	enum tier tier;
};

#define GATE_LABELS(n, t) \
	{ n, n##_busy, n##_saved, n##_call, n##_after, n##_restored, n##_counted, n##_end, t }
#define GATE_EXTERN(n) \
	extern char n[], n##_busy[], n##_saved[], n##_call[], n##_after[], \
		n##_restored[], n##_counted[], n##_end[]

static bool gate_leave_by(struct thread *t, struct gregs *r, const struct gate_labels *g)
{
	const char *at = (const char *)r->rip;
	uint64_t resume = at == g->entry ? r->rcx : t->resume;

	if (at < g->entry || at >= g->end)
		return false;
	if (at >= g->saved && at < g->restored)
		r->r15 = t->r15;
	if (at >= g->after && at < g->counted)
		t->counts[g->tier * SLOT_CALLS + t->slot_now]++;
	if (at > g->restored)
		r->r11 = t->flags;
	call_context(r, resume, g->tier, at >= g->after);
	return true;
}

/* Takes a thread that a signal found on the short way out of the gate. */
static void gate_leave(struct thread *t, struct gregs *r)
{
	GATE_EXTERN(gate_patch);
	GATE_EXTERN(gate_net);

	if (!gate_leave_by(t, r, &(struct gate_labels)GATE_LABELS(gate_patch, TIER_PATCH)))
		gate_leave_by(t, r, &(struct gate_labels)GATE_LABELS(gate_net, TIER_NET));
}

/*
 * A signal of ours cut a call short that the program must not see cut: it is
 * made again.  Calls that the kernel restarts by itself stand at the call.
 */
static void call_again(struct thread *t, struct gregs *r)
{
	extern char call_kernel_patch_window_end[], call_kernel_net_window_end[];
	GATE_EXTERN(gate_patch);
	GATE_EXTERN(gate_net);
	bool gate = r->rip == (uint64_t)gate_patch_after || r->rip == (uint64_t)gate_net_after;
	bool busy = r->rip == (uint64_t)call_kernel_patch_window_end ||
		    r->rip == (uint64_t)call_kernel_net_window_end;

	if (r->rax != (uint64_t)-EINTR || (!gate && !busy) || (gate && !t->slot_now))
		return;
	r->rax = gate ? t->slot_now - 1 : t->frame.rax;
	r->rip -= 2;
}

/* Notes a signal that came while C code of the inside ran. */
static void hold(struct thread *t, const uint8_t *info, struct ucontext_raw *uc)
{
	struct area *a = (struct area *)boot.area;

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

/* The held signal arrived again at the end of its call. */
static void boundary_context(struct thread *t, struct ucontext_raw *uc)
{
	registers_from_frame(&uc->regs, &t->frame);
	call_context(&uc->regs, t->frame.resume, t->frame.tier, !t->restart);
	uc->mask = t->held_mask;
	t->at_boundary = 0;
	t->restart = 0;
	t->busy = 0;
}

/* Counts a trapped call by its site; how many there were. */
static uint32_t site_note(uint64_t address)
{
	struct area *a = (struct area *)boot.area;
	uint64_t hash = (address >> 1) * 0x9e3779b97f4a7c15ull >> 32;

	for (unsigned i = 0; i < 16; i++) {
		struct site_row *row = &a->site[(hash + i) % AREA_SITES];
		uint64_t empty = 0;

		if (__atomic_compare_exchange_n(&row->address, &empty, address, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			row->image = boot.image;
		if (row->address == address && row->image == boot.image) {
			return __atomic_add_fetch(&row->count, 1, __ATOMIC_RELAXED);
		}
	}
	__atomic_fetch_add(&a->sites_lost, 1, __ATOMIC_RELAXED);
	return 0;
}

/* rip stands behind the call. */
static void go_to_gate(struct ucontext_raw *uc)
{
	uc->regs.rcx = uc->regs.rip;
	uc->regs.rip = (uint64_t)gate_net;
}

static void refuse(struct thread *t, uint32_t reason, uint64_t address)
{
	struct area *a = (struct area *)boot.area;

	if (!__atomic_fetch_add(&a->refused[reason], 1, __ATOMIC_RELAXED))
		request_tell(t, REQ_REFUSED, reason, address);
}

/* The dispatch caught a call outside the gate; true when that is what it was. */
static bool dispatch_caught(struct thread *t, const uint8_t *info,
			    struct ucontext_raw *uc)
{
	uint64_t from = info_long(info, INFO_CALL_ADDR);
	int32_t code = info_int(info, INFO_CODE);

	if (code == SECCOMP_CODE && from - VSYSCALL_PAGE < 0x1000) {
		site_note(from);
		go_to_gate(uc);
		return true;
	}
	if (code == SECCOMP_CODE)
		seccomp_strict_act(t, info_int(info, INFO_ERRNO));
	if (code != DISPATCH_CODE)
		return false;
	if (info_int(info, INFO_ARCH) != ARCH_X86_64) {
		uc->regs.rax = (uint64_t)-ENOSYS;
		refuse(t, REFUSED_INT80, from - 2);
		return true;
	}
	site_note(uc->regs.rip - 2);
	go_to_gate(uc);
	return true;
}

/* Code that others may be running is not changed under them. */
static bool alone(const struct thread *t)
{
	for (uint32_t i = 0; i < AREA_THREADS; i++)
		if (i != t->index && block_live(i))
			return false;
	return true;
}

/*
 * A marked site of the program's own code that proves hot is patched, if the
 * jump leaves the address behind the call whole or begins at the call.
 */
static void hot_patch(struct thread *t, uint64_t site)
{
	struct board_room *room = &boot.near_program;
	long used;

	if (t->busy || !room->len || !alone(t))
		return;
	used = request_ask(t, REQ_SITE_HOT, site, room->at, room->len << 32 | room->used);
	if (used > 0 && (uint64_t)used <= room->len)
		room->used = (uint64_t)used;
}

/* The instruction at rip behind prefixes that mean nothing to a call. */
static uint64_t behind_prefixes(uint64_t rip)
{
	for (int i = 0; i < PREFIXES_MAX; i++, rip++) {
		uint8_t b = *(const uint8_t *)rip;

		if ((b & 0xf0) != 0x40 && b != 0x66 && b != 0xf2 && b != 0xf3)
			break;
	}
	return rip;
}

/* A mark was met where a call stood; true when that is what it was. */
static bool mark_caught(struct thread *t, const uint8_t *info, struct ucontext_raw *uc)
{
	uint64_t site = behind_prefixes(uc->regs.rip);
	uint16_t mark;

	if (info_int(info, INFO_CODE) <= 0)
		return false;
	mark = *(const uint16_t *)site;
	if (mark != MARK_SYSCALL && mark != MARK_COMPAT)
		return false;
	uc->regs.rip = site + 2;
	if (mark == MARK_COMPAT) {
		uc->regs.rax = (uint64_t)-ENOSYS;
		refuse(t, REFUSED_INT80, site);
		return true;
	}
	if (site_note(site) == HOT_CALLS)
		hot_patch(t, site);
	if (*(const uint8_t *)site == JUMP)
		uc->regs.rip = site;	/* patched just now: through its board */
	else
		go_to_gate(uc);
	return true;
}

static uint8_t *hidden_info(struct thread *t, int sig)
{
	return t->hidden_info[sig == SIGILL ? 1 : sig == SIGSEGV ? 2 : 0];
}

/* A hidden signal that was sent to a thread which believes to block it waits. */
static bool hidden_kept(struct thread *t, int sig, const uint8_t *info)
{
	if (!(t->hidden_blocked & SIG_BIT(sig)) || info_int(info, INFO_CODE) > 0)
		return false;
	bytes_copy(hidden_info(t, sig), info, SIGINFO_SIZE);
	t->hidden_waits |= SIG_BIT(sig);
	return true;
}

/* The program's belief changes; what waited comes now. */
static void hidden_block(struct thread *t, uint64_t blocked)
{
	uint64_t come = t->hidden_waits & ~blocked;

	t->hidden_blocked = blocked & HIDDEN_SIGNALS;
	t->hidden_waits &= blocked;
	for (int sig = SIGILL; sig <= SIGSYS; sig++)
		if (come & SIG_BIT(sig))
			OWN4(__NR_rt_tgsigqueueinfo, t->pid, t->tid, sig,
			     hidden_info(t, sig));
}

/* Signals that are mve's own, not the program's. */
static bool hidden_serve(struct thread *t, int sig, const uint8_t *info,
			 struct ucontext_raw *uc)
{
	if (sig == SIGSYS && t->arm_wanted && info_int(info, INFO_CODE) == SI_TKILL) {
		seal_arm_wanted(t);
		call_again(t, &uc->regs);
		return true;
	}
	if (sig == SIGSYS && dispatch_caught(t, info, uc))
		return true;
	if (sig == SIGILL && mark_caught(t, info, uc))
		return true;
	if (sig == SIGSEGV && info_int(info, INFO_CODE) == SEGV_ACCERR &&
	    guard_met(t, info_long(info, INFO_ADDR)))
		return true;
	return HIDDEN_SIGNALS & SIG_BIT(sig) && hidden_kept(t, sig, info);
}

/* A trap of the program's own seccomp filter: name its site, not the gate. */
static void call_address_mend(uint8_t *info, const struct ucontext_raw *uc)
{
	extern char gate_patch_start[], gate_net_end[];
	uint64_t *addr = (uint64_t *)(info + INFO_CALL_ADDR);

	if (*addr >= (uint64_t)gate_patch_start && *addr < (uint64_t)gate_net_end)
		*addr = uc->regs.rip;
}

/* Every signal enters here, from signal_entry. */
void signal_handle(int sig, uint8_t *info, struct ucontext_raw *uc)
{
	struct thread *t = thread_self();
	bool boundary = t->at_boundary;

	if (hidden_serve(t, sig, info, uc))
		return;
	if (t->busy && !boundary) {
		if (is_fault(sig, info))
			default_restore(sig);	/* our bug: die where it is */
		else
			hold(t, info, uc);
		return;
	}
	if (boundary)
		boundary_context(t, uc);
	else
		gate_leave(t, &uc->regs);
	if (sig == SIGSYS)
		call_address_mend(info, uc);
	deliver(t, sig, info, uc);
}

/* --- the end of a call that a signal waits for ------------------------------ */

/* Queues the held signal again and lets it in; returns if it did not come. */
void signal_exit(struct thread *t)
{
	int sig = info_int(t->held_info, INFO_SIGNO);
	uint64_t mask = t->held_mask & ~SIG_BIT(sig);

	t->pending = 0;
	t->at_boundary = 1;	/* a hidden signal is not blocked even here */
	if (OWN4(__NR_rt_tgsigqueueinfo, t->pid, t->tid, sig, t->held_info) < 0)
		OWN3(__NR_tgkill, t->pid, t->tid, sig);
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
	t->at_boundary = 0;
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &t->held_mask, 0, 8);
	if (t->restart)
		dispatch(t);
}

/* --- the calls -------------------------------------------------------------- */

long serve_sigaction(struct thread *t)
{
	const struct frame *f = &t->frame;
	int sig = (int)f->rdi;
	struct action new = { 0 }, old, kernel;
	long result = 0;

	t->answered = 1;
	if (f->r10 != 8 || sig < 1 || sig > SIGNALS ||
	    (f->rsi && (sig == SIGKILL || sig == SIGSTOP)))
		return -EINVAL;
	if (f->rsi && copy_in(&new, f->rsi, sizeof(new)))
		return -EFAULT;
	new.mask &= ~(SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP));
	sighand_lock(t->sig);
	old = t->sig->action[sig];
	if (f->rsi) {
		/* A handler must be known before it can be called. */
		t->sig->action[sig] = new;
		kernel = action_for_kernel(sig, &new);
		result = kernel_action(sig, &kernel);
	}
	sighand_unlock(t->sig);
	if (!result && f->rdx && copy_out(f->rdx, &old, sizeof(old)))
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
		if (how == SIG_UNBLOCK && was && copy_in(&set, t->frame.rsi, 8))
			set = 0;
		hidden_block(t, how == SIG_SETMASK ? now & hidden
			      : how == SIG_BLOCK ? was | (now & hidden) : was & ~set);
	}
	if (was && old_at && !copy_in(&old, old_at, 8)) {
		old |= was;
		copy_out(old_at, &old, 8);
	}
	return result;
}

/* A call that blocks under a mask of its own, whose address is `mask_at`. */
long serve_masked(struct thread *t, uint64_t mask_at)
{
	if (mask_at && !copy_in(&t->temp_mask, mask_at, 8))
		t->has_temp_mask = 1;
	return call_kernel(t);
}

/* rt_sigtimedwait: a hidden signal that waits is with us, not with the kernel. */
long serve_sigtimedwait(struct thread *t)
{
	uint64_t set = 0, at = t->frame.rsi;
	long result = -EINTR;
	int sig;

	if (!t->hidden_blocked || copy_in(&set, t->frame.rdi, 8))
		return call_kernel(t);
	if (!(set & t->hidden_waits))
		result = call_kernel(t);
	if (result != -EINTR || !(set & t->hidden_waits))
		return result;
	sig = set & t->hidden_waits & SIG_BIT(SIGILL) ? SIGILL : SIGSYS;
	t->answered = 1;
	t->hidden_waits &= ~SIG_BIT(sig);
	if (at && copy_out(at, hidden_info(t, sig), SIGINFO_SIZE))
		return -EFAULT;
	return sig;
}

long serve_sigaltstack(struct thread *t)
{
	const struct frame *f = &t->frame;
	bool on = on_stack(&t->alt, f->rsp) && !(t->alt.flags & AUTODISARM);
	struct altstack new, old = t->alt;

	t->answered = 1;
	old.pad = 0;
	old.flags = (t->alt.flags & AUTODISARM) |
		    (on ? SS_ONSTACK : t->alt.size ? 0 : SS_DISABLE);
	if (f->rdi) {
		if (copy_in(&new, f->rdi, sizeof(new)))
			return -EFAULT;
		if (on)
			return -EPERM;
		int32_t mode = new.flags & ~AUTODISARM;
		if (mode != SS_ONSTACK && mode != SS_DISABLE && mode != 0)
			return -EINVAL;
		if (mode == SS_DISABLE)
			new.sp = new.size = 0;
		else if (new.size < 2048)
			return -ENOMEM;
		t->alt = new;
	}
	return f->rsi && copy_out(f->rsi, &old, sizeof(old)) ? -EFAULT : 0;
}

/*
 * The frame lies at the program's rsp.  What it says of the alternate stack is
 * taken over, ours is put in its place, and the kernel does the rest.
 */
long serve_sigreturn(struct thread *t)
{
	struct altstack ours = { (uint64_t)t + BLOCK_SIGSTACK, 0, 0,
				 BLOCK_SIGSTACK_SIZE };
	struct ucontext_raw uc;
	uint64_t at = t->frame.rsp;

	if (t->pending)
		return CALL_RESTART;
	if (!copy_in(&uc, at, sizeof(uc))) {
		if (uc.stack.sp != ours.sp)
			t->alt = uc.stack;
		hidden_block(t, uc.mask & HIDDEN_SIGNALS);
		uc.mask &= ~HIDDEN_SIGNALS;
		copy_out(at + offsetof(struct ucontext_raw, stack), &ours, sizeof(ours));
		copy_out(at + offsetof(struct ucontext_raw, mask), &uc.mask, 8);
	}
	t->restart = 1;		/* if a signal comes before the kernel has it */
	sigreturn_exit();
}
