/*
 * Coming to a program that runs.  The monitor holds all of its threads by ptrace, has mapped
 * what inside_begin() finds in a fresh one, and sends them here, each step alone.  When we
 * begin no signal comes to us and no call; so if the monitor is killed between two steps the
 * threads go on as they are: what is not done yet nothing asks for.
 *
 * All signals are blocked while a thread is here.
 */
#include <asm/unistd.h>
#include <linux/signal.h>

#include "engine/abi/attach.h"
#include "engine/core/must.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/crash/failed.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/seal.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/record/back.h"
#include "engine/inside/roles/long_way.h"
#include "engine/inside/roles/start.h"
#include "engine/inside/rollback/rollback.h"

void attach_serve(struct thread *t, struct attach *a, uint32_t step);

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

static void actions_learn(struct sighand *s)
{
	struct action now;

	for (int sig = 1; sig <= SIGNALS; sig++)
		if (!OWN4(__NR_rt_sigaction, sig, 0, &now, 8))
			s->action[sig] = now;
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
	ways_fill();
	locals_begin();
	back_begin();
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

	MUST(!boot.streams && a->row < a->threads);
	MUST(t == thread_self() && t->tid == a->thread[a->row].tid);
	t->hidden_blocked = a->thread[a->row].mask & HIDDEN_SIGNALS;
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
	}
}
