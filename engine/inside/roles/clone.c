/*
 * New threads and processes.
 *
 * The kernel's child starts where its parent stood, in clone_kernel, with every
 * signal blocked, the hidden ones included, for it has no block yet; it takes
 * its block (its own when it shares the parent's memory, else its copy of the
 * parent's), arms itself and returns to the program as the parent does.  vfork's
 * child runs on the parent's program stack: nothing of the parent may be kept
 * there, and nothing is, since the long way keeps the registers in the block.
 *
 * Latches of the inside are taken before the memory is copied, so that a child never
 * inherits one that a thread it does not have was holding (roles/modules.c).
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/sched.h>
#include <linux/signal.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/walk.h"
#include "engine/inside/actions/actions.h"
#include "engine/inside/calls/pids.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/seal.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/sleep.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/turns.h"
#include "engine/inside/record/life.h"
#include "engine/inside/roles/clone.h"
#include "engine/inside/roles/modules.h"
#include "engine/inside/rules/rules_object.h"
#include "engine/inside/sample/inputs.h"
#include "engine/inside/state/children.h"
#include "engine/inside/state/ids.h"
#include "engine/inside/state/space.h"

#define CLONE3_SIZE_MIN	64

struct clone_want {
	uint64_t flags, stack;	/* stack: the child's rsp, 0 the parent's */
	uint64_t ctid;
};

/* Reads what the call asks for; false when the kernel will refuse it anyway. */
static bool clone_read(const struct frame *f, long nr, struct clone_want *w)
{
	struct clone_args args;

	*w = (struct clone_want){ .flags = SIGCHLD };
	if (nr == __NR_vfork)
		w->flags |= CLONE_VM | CLONE_VFORK;
	if (nr == __NR_clone)
		*w = (struct clone_want){ f->rdi, f->rsi, f->r10 };
	if (nr != __NR_clone3)
		return true;
	if (f->rsi < CLONE3_SIZE_MIN || target_in(&args, f->rdi, CLONE3_SIZE_MIN))
		return false;
	w->flags = args.flags;
	w->ctid = args.child_tid;
	w->stack = args.stack ? args.stack + args.stack_size : 0;
	return true;
}

/* The block of a child that shares our memory. */
static struct thread *child_block(struct thread *t, const struct clone_want *w)
{
	struct thread *c = block_take();

	if (!c)
		return NULL;
	c->frame = t->frame;
	c->call = t->call;
	call_begins_again(c);
	c->sig = t->sig;
	c->lock_gate = t->lock_gate;
	c->slot = NULL;
	c->pid = t->pid;
	c->held_mask = 0;
	c->pending = c->at_boundary = 0;
	c->hidden_blocked = t->hidden_blocked;
	c->hidden_waits = 0;
	c->once_turn = c->condition = c->want_turn = c->want_mutex = 0;
	c->made = c->failing = 0;
	c->past = 0;
	c->arm_wanted = c->in_vfork = c->in_exec = c->taking = c->turning = c->timer = 0;
	c->deferred = c->park = c->put_off = c->kept = c->holds = c->unheard = 0;
	c->baton = c->baton_due = 0;
	c->takes_turns = t->takes_turns;
	c->own_files = c->files_waited = c->update = 0;
	c->latches = 0;
	c->stands = NULL;
	c->away = c->ticking = 0;
	c->ticks = (struct ticks){ .shown = t->ticks.shown };
	c->nexts = c->joined = c->faulting = 0;
	c->entered = c->standing = 0;
	c->following = t->following;
	c->polls = t->polls;
	c->has_lane = 0;
	c->vpid = t->vpid;
	c->child_lane = t->child_lane;
	c->child_vtid = t->child_vtid;
	c->child_ptid = t->child_ptid;
	c->child_ctid = t->child_ctid;
	c->tid = 0;
	c->creator = t->tid;
	c->clone_mask = t->clone_mask;
	c->alt = (struct altstack){ 0 };
	rseq_none(c);
	c->wider = space_bits(t);
	if (w->flags & CLONE_VFORK)
		c->alt = t->alt;
	if (!(w->flags & CLONE_SIGHAND)) {
		sighand_take(t->sig);
		bytes_copy(own_sig(c)->action, t->sig->action, sizeof(t->sig->action));
		sighand_give(t->sig);
		own_sig(c)->latch = LATCH_FREE;
		c->sig = own_sig(c);
	}
	return c;
}

static void child_describe(struct thread *c, const struct clone_want *w)
{
	c->clone_flags = w->flags;
	c->clear_tid = w->flags & CLONE_CHILD_CLEARTID ? w->ctid : 0;
	c->busy = 1;
	if (w->stack)
		c->frame.rsp = w->stack;
}

static long clone_sharing(struct thread *t, const struct clone_want *w)
{
	uint32_t *newborn = &((struct area *)boot.area)->newborn;
	struct thread *c;
	long result;

	MUST(!t->in_vfork);
	if (w->flags & CLONE_THREAD && t->child_lane != CHUNK_NONE)
		baton_begin(t);
	c = child_block(t, w);
	if (!c) {
		t->answered = 1;
		return -EAGAIN;
	}
	child_describe(c, w);
	/* Until its child is done it stands still by itself. */
	t->in_vfork = t->slot->parked = !!(w->flags & CLONE_VFORK);
	if (!locks_on)
		barriers_begin();
	/* The monitor must not take all threads to stand while one has not begun. */
	__atomic_fetch_add(newborn, 1, __ATOMIC_RELAXED);
	result = clone_kernel(&t->frame, c);
	if (result < 0)
		__atomic_fetch_sub(newborn, 1, __ATOMIC_RELAXED);
	t->in_vfork = t->slot->parked = 0;
	if (result > 0 && w->flags & CLONE_THREAD && t->child_lane != CHUNK_NONE)
		locks_begin();
	if (w->flags & CLONE_VFORK)
		seal_look(t);
	/* vfork's child has left our memory by now, however it did. */
	if (result < 0 || w->flags & CLONE_VFORK)
		block_free(c);
	return result;
}

/*
 * The parent may end before the child has run at all, and the child be killed before it
 * has: so the monitor is told of it by its pid.  Both write the row, whoever comes last.
 */
static int32_t *birth_begin(const struct thread *t)
{
	int32_t *row = ((struct area *)boot.area)->births;

	for (int i = 0; i < BIRTHS; i++, row++) {
		int32_t was = __atomic_load_n(row, __ATOMIC_RELAXED);

		if ((!was || (was > 0 && OWN2(__NR_kill, was, 0) == -ESRCH)) &&
		    __atomic_compare_exchange_n(row, &was, -t->tid, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return row;
	}
	return NULL;
}

static void birth_told(const struct thread *t, long result)
{
	int32_t begun = -t->tid;

	if (t->birth)
		__atomic_compare_exchange_n(t->birth, &begun, result > 0 ? (int32_t)result : 0,
					    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* In parent and child. */
static void sighand_forked(struct thread *t)
{
	if (latch_is_held(LATCH_SIGHAND))
		sighand_give(t->sig);
}

static long clone_copying(struct thread *t, const struct clone_want *w)
{
	uint64_t rsp = t->frame.rsp, flags = t->clone_flags, clear_tid = t->clear_tid;
	long result;

	/* A parent that waits for its child has none of its memory. */
	MUST(!(w->flags & CLONE_VM) && !t->in_vfork);

	if (!block_is_only(t))
		sighand_take(t->sig);
	child_describe(t, w);
	t->birth = birth_begin(t);
	lead_forks(t);
	result = clone_kernel(&t->frame, t);
	birth_told(t, result);
	t->frame.rsp = rsp;
	t->clone_flags = flags;
	t->clear_tid = clear_tid;
	sighand_forked(t);
	return result;
}

/* A leader's: the program hears of it by an id that means nobody else (ids.c). */
static long born_named(struct thread *t, const struct clone_want *w, long real)
{
	int32_t id = id_born((int32_t)real);

	if (!(w->flags & CLONE_THREAD))
		child_reused((int32_t)real);
	if (id == real)
		return real;
	child_ids_parent(t, (int32_t)real, id);
	if (!(w->flags & CLONE_THREAD))
		child_note(t, id, (int32_t)real, LANES);
	return id;
}

/* clone, clone3, fork, vfork; in the parent. */
long serve_clone(struct thread *t, long nr)
{
	uint64_t all = ALL_SIGNALS;
	struct clone_want want;
	bool names = !t->following && !ids_are_ours();
	struct clone_args asked;
	uint32_t taken = 0;
	long result;

	if (!clone_read(&t->frame, nr, &want))
		return call_kernel(t);
	pids_clone(t, want.flags);
	if (names) {
		asked = clone_asked(t, nr);
		child_ids_find(t, &asked);
	}
	/* While signals come: who holds one may wait for this thread to hear it (seal_break). */
	if (!(want.flags & CLONE_VM))
		taken = modules_fork_begin();
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &all, &t->clone_mask, 8);
	if (t->pending)
		result = CALL_RESTART;
	else
		result = want.flags & CLONE_VM ? clone_sharing(t, &want)
					       : clone_copying(t, &want);
	modules_fork_end(taken);
	if (names && result > 0)
		result = born_named(t, &want, result);
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &t->clone_mask, 0, 8);
	return result;
}

/* Of the thread that the child is: what only the parent's has to come. */
void thread_fork(struct thread *t)
{
	t->fork_seq = 0;
	t->faulting = 0;
	t->hidden_waits = 0;	/* pending signals are the parent's */
	t->arm_wanted = 0;
	t->timer = 0;
}

/* How its program knows it; a follower's sanitizer has tasks of its own, which have no lane. */
static void child_named(struct thread *c)
{
	if (!c->following)
		c->vtid = id_born(c->tid);
	else
		c->vtid = c->child_lane != CHUNK_NONE ? c->child_vtid : c->tid;
	if (!(c->clone_flags & CLONE_THREAD))
		c->vpid = c->vtid;
}

/* First C code of a child; clone_child in gate.S brought us here. */
void child_begin(struct thread *t)
{
	int32_t tid;

	MUST(t == thread_self() && !t->stands && !t->standing);
	t->frame.rax = 0;
	t->made = 0;
	t->restart = 0;		/* as a handler's end has left it: a signal may come below */
	tid = (int32_t)OWN0(__NR_gettid);
	if (!(t->clone_flags & CLONE_THREAD)) {
		t->pid = tid;
		if (streams.conduct)
			baton_alone(t, !(t->clone_flags & CLONE_VM));
	}
	/* seal_break looks for it after it broke the seal. */
	ANNOUNCE(seal, &t->tid, tid);
	if (!(t->clone_flags & CLONE_VM)) {
		sighand_forked(t);
		modules_forked(t);
	}
	if (t->clone_flags & CLONE_CLEAR_SIGHAND)
		sighand_clear(t->sig);
	slot_claim(t);
	/* Who sees the count sees the slot. */
	if (t->clone_flags & CLONE_VM)
		PUBLISH_BY(area_newborn, fetch_sub, &((struct area *)boot.area)->newborn, 1);
	rules_child(t);
	if (streams.conduct) {
		child_named(t);
		stream_child(t, t->child_lane);
		if (t->clone_flags & CLONE_THREAD && t->has_lane)
			locks_begin();
		if (t->clone_flags & CLONE_THREAD && t->following)
			inputs_born(t);
	}
	if (!(t->clone_flags & CLONE_VM) && t->birth)
		/* Who sees that it is born sees its slot. */
		PUBLISH(births, t->birth, 0);
	if (t->clone_flags & (CLONE_VM | CLONE_CLEAR_SIGHAND))
		signals_start(t);
	else
		hidden_unblock();	/* all else of signals is as its parent has it */
	/* A bad pointer is a signal: not before. */
	if (streams.conduct && t->vtid != t->tid)
		child_ids(t);
	seal_arm(t);
	if (t->clone_flags & CLONE_THREAD)
		baton_take(t, 0);
	OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &t->clone_mask, 0, 8);
}
