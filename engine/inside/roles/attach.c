/*
 * Coming to a program that runs.  The monitor holds all of its threads by ptrace, has mapped
 * what inside_begin() finds in a fresh one, and sends them here, each step alone.  When we
 * begin no signal comes to us and no call; so if the monitor is killed between two steps the
 * threads go on as they are: what is not done yet nothing asks for.
 *
 * Leaving is the same, backwards.  The program's code is its own by then; a thread that stands
 * in the gate or in a board is sent to the place of its own that this stands for.  One that is
 * in C code of ours is asked by a knock to come to the end of its call (signal/caught.c), and
 * stands there.
 *
 * All signals are blocked while a thread is here.
 */
#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/signal.h>

#include "engine/abi/attach.h"
#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/crash/failed.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/seal.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/record/back.h"
#include "engine/inside/roles/attach.h"
#include "engine/inside/roles/long_way.h"
#include "engine/inside/roles/park.h"
#include "engine/inside/roles/start.h"
#include "engine/inside/rollback/rollback.h"
#include "engine/inside/signal/leave.h"
#include "engine/inside/signal/sigcalls.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/space.h"

#define CALL_LEN	2		/* of `syscall` */

void attach_serve(struct thread *t, struct attach *a, uint32_t step);

_Static_assert(sizeof(struct attach_regs) == offsetof(struct gregs, cs), "they begin alike");
_Static_assert(BACK_MASK + 8 <= BLOCK_STACK_TOP - 0x4000, "the stack is not so deep");

/* --- coming ------------------------------------------------------------------------------ */

static void thread_init(struct thread *t, int32_t pid, int32_t tid)
{
	extern char lock_gate[];

	t->lock_gate = (uint64_t)lock_gate;
	t->sig = &process_sig;
	t->pid = pid;
	t->tid = tid;
	t->vpid = pid;
	t->vtid = tid;
}

/* The first thread of `a` is the caller, in the block that the monitor has mapped. */
static void begin(struct thread *t, struct attach *a)
{
	int32_t pid = (int32_t)OWN0(__NR_getpid);

	above_fill();
	block_prepare(t, 0);
	thread_init(t, pid, a->thread[0].tid);
	actions_learn(t->sig);
	failed_begin();
	rollback_begin();
	ways_begin();
	locals_begin();
	back_begin();
	/* Whoever may come to follow: its threads are to stand for as short as can be. */
	barriers_begin();
	a->thread[0].block = (uint64_t)t;
	for (uint32_t i = 1; i < a->threads; i++) {
		struct thread *o = block_take();

		if (o)
			thread_init(o, pid, a->thread[i].tid);
		a->thread[i].block = (uint64_t)o;
	}
}

static void thread_begin(struct thread *t, struct attach *a)
{
	struct altstack ours = { (uint64_t)t + BLOCK_SIGSTACK, 0, 0, BLOCK_SIGSTACK_SIZE };
	const struct attach_row *row = &a->thread[a->row];

	MUST(!boot.streams && a->row < a->threads);
	MUST(t == thread_self() && t->tid == row->tid);
	t->hidden_blocked = row->mask & HIDDEN_SIGNALS;
	rseq_note(t, row->rseq, row->rseq_len, row->rseq_sign);
	slot_claim(t);
	OWN2(__NR_sigaltstack, &ours, &t->alt);
}

static void actions_begin(struct thread *t, struct attach *a)
{
	(void)a;
	for (int sig = 1; sig <= SIGNALS; sig++) {
		struct action k = action_for_kernel(sig, &t->sig->action[sig]);

		if (sig != SIGKILL && sig != SIGSTOP && k.handler != t->sig->action[sig].handler)
			kernel_action(sig, &k);
	}
	failed_begun();
}

static void watch(struct thread *t, struct attach *a)
{
	(void)t;
	MUST(a->guards <= SLOT_GUARDS);
	for (uint32_t i = 0; i < a->guards; i++)
		a->unwatched += !guard_take(a->guard[i]);
}

static void arm(struct thread *t, struct attach *a)
{
	(void)a;
	seal_arm(t);
}

/* Where a block says whose it is: for the monitor. */
const uint64_t block_tid_at = offsetof(struct thread, tid);

/* --- leaving ------------------------------------------------------------------------------ */

/* What the program has when its call is done, or is about to be made again. */
static void call_told(const struct thread *t, struct attach_back *b)
{
	const struct frame *f = &t->frame;

	*b = (struct attach_back){
		f->rax, f->rbx, f->site_end, f->rdx, f->rsi, f->rdi, f->rbp, f->rsp,
		f->r8, f->r9, f->r10, f->flags, f->r12, f->r13, f->r14, f->r15,
		f->flags, f->site_end - (t->restart ? CALL_LEN : 0), t->held_mask, 0,
	};
}

/* Until the monitor has taken its registers over; or we stay. */
void leave_stand(struct thread *t)
{
	struct attach_back *b = (struct attach_back *)((uint64_t)t + ATTACH_BACK);
	struct __kernel_timespec look = { 0, PAUSE_WOKEN_NS };

	MUST(t->busy && t == thread_self());
	sigreturn_undo(t);
	call_told(t, b);
	/* The monitor looks when we are stopped. */
	PUBLISH(leave_stands, &b->stands, (uint64_t)t->tid);
	while (__atomic_load_n(&boot.leaving, __ATOMIC_RELAXED) && monitor_alive())
		OWN4(__NR_futex, &boot.leaving, FUTEX_WAIT, 1, &look);
	b->stands = 0;
}

static void leave(struct thread *t, struct attach *a)
{
	struct gregs r = { 0 };

	bytes_copy(&r, &a->regs, sizeof(a->regs));
	call_again(t, &r);
	gate_leave(t, &r);
	sigreturn_leave(t, &r);
	bytes_copy(&a->regs, &r, sizeof(a->regs));
}

static void disarm(struct thread *t, struct attach *a)
{
	(void)a;
	t->armed = 0;
	own_call(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0, 0);
}

static void actions_end(struct thread *t, struct attach *a)
{
	(void)a;
	actions_give_back(t->sig);
	guards_end();
	space_end();
	company_end();
}

static void thread_end(struct thread *t, struct attach *a)
{
	MUST(a->row < a->threads);
	a->thread[a->row].mask = t->hidden_blocked;
	OWN2(__NR_sigaltstack, &t->alt, 0);
	rseq_back(t);
	slot_release(t);
}

void attach_serve(struct thread *t, struct attach *a, uint32_t step)
{
	switch (step) {
	case ATTACH_BEGIN:
		begin(t, a);
		break;
	case ATTACH_THREAD:
		thread_begin(t, a);
		break;
	case ATTACH_ACTIONS:
		actions_begin(t, a);
		break;
	case ATTACH_WATCH:
		watch(t, a);
		break;
	case ATTACH_ARM:
		arm(t, a);
		break;
	case DETACH_LEAVE:
		leave(t, a);
		break;
	case DETACH_DISARM:
		disarm(t, a);
		break;
	case DETACH_ACTIONS:
		actions_end(t, a);
		break;
	case DETACH_THREAD:
		thread_end(t, a);
		break;
	}
}
