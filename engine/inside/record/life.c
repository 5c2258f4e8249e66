/*
 * A leader's threads, programs and their ends, as they are told.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/core/walk.h"
#include "engine/inside/calls/special.h"
#include "engine/inside/crash/crash.h"
#include "engine/inside/crash/faulting.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/edge.h"
#include "engine/inside/lanes/event.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/lanes/tick.h"
#include "engine/inside/order/baton.h"
#include "engine/inside/order/order.h"
#include "engine/inside/realm/realm.h"
#include "engine/inside/record/care.h"
#include "engine/inside/record/lead.h"
#include "engine/inside/record/life.h"
#include "engine/inside/record/others.h"

/* The lane of a child to be; CHUNK_NONE: it will not be followed. */
static uint32_t child_lane(struct thread *t)
{
	int lane = host_lane(&t->writer);

	t->child_lane = lane < 0 ? CHUNK_NONE : (uint32_t)lane;
	return t->child_lane;
}

#define FORK_UNDRAWN	1

/*
 * A fork has its number from before it is made.  What other threads do meanwhile is told as
 * behind it: plain variables are among the first of what is copied.
 */
void lead_forks(struct thread *t)
{
	if (!t->fork_seq)
		return;
	MUST(t->fork_seq == FORK_UNDRAWN);	/* a fork has one number */
	t->fork_seq = lead_seq();
	giving_set(t, t->fork_seq);
	order_forked();
}

static long lead_clone(struct thread *t, long nr)
{
	uint32_t lane = child_lane(t), life = 0;
	int64_t pidfd = -1;
	struct event *e;
	bool missed, forked;
	long result;

	MUST(!t->fork_seq);

	if (lane != CHUNK_NONE)
		life = streams_section(&streams, streams.self)->lane[lane].life;
	t->fork_seq = FORK_UNDRAWN;
	if (locks_led && !stateless && !(clone_asked(t, nr).flags & CLONE_VM))
		tick_fork(t);
	result = serve_special(t, nr);
	t->away = 0;
	missed = baton_missed(t, call_find(nr));
	forked = t->fork_seq != FORK_UNDRAWN;
	if (result < 0 && lane != CHUNK_NONE)
		lane_cancel(&streams, lane);
	if (result == CALL_RESTART) {
		t->fork_seq = 0;
		giving_end(t);
		return result;
	}
	if (result > 0)
		pidfd = clone_pidfd(t, nr);
	if (pidfd >= 0 && locks_on)
		number_take(t, pidfd, forked ? t->fork_seq : 0);
	if (t->edge)	/* its own event has no room for that */
		edge_tell(t, forked ? t->fork_seq : 0);
	e = event_begin(t, EVENT_CALL, nr, result);
	e->arg[0] = lane;
	e->arg[1] = life;
	e->arg[2] = forked;
	if (forked)
		e->seq = t->fork_seq;
	t->fork_seq = 0;
	e->arg[3] = (uint64_t)pidfd;
	e->arg[4] = missed;
	event_end(t);
	giving_end(t);
	t->child_lane = CHUNK_NONE;
	return result;
}

/* An execve is told before it is made; how it ended, afterwards. */
static long lead_exec(struct thread *t, long nr, const struct walk *w)
{
	long result;

	realm_catch_up(t);
	call_tell(t, w, nr);
	result = serve_special(t, nr);
	lead_exec_done(t, result);
	return result;
}

void lead_exec_done(struct thread *t, int64_t outcome)
{
	event_begin(t, EVENT_EXEC, __NR_execve, outcome);
	if (outcome == EXEC_HELD)
		payload_tell(t, &boot.layout, sizeof(boot.layout));
	event_end(t);
}

/* Another thread has made one, and has yet to tell: followers would wait for that. */
static bool is_birth_untold(const struct thread *t)
{
	const struct thread *o;

	for (uint32_t i = 0; (o = block_next(&i)); i++)
		if (o != t && o->pid == t->pid && o->has_lane && o->child_lane != CHUNK_NONE &&
		    __atomic_load_n(&o->busy, __ATOMIC_RELAXED))
			return true;
	return false;
}

static void births_wait(const struct thread *t)
{
	struct patience p = PATIENCE(WAIT_birth);

	while (is_birth_untold(t) && patience_step(&p))
		;
	patience_end(&p);
}

static long lead_exit(struct thread *t, long nr, const struct walk *w)
{
	int32_t status = (int32_t)t->frame.rdi;
	bool group = nr == __NR_exit_group;

	if (t->pending)
		return CALL_RESTART;
	if (group && crash_exits(t))
		return serve_special(t, nr);
	fault_end(t);
	/* Another version may lead from here: then nobody is told of this end. */
	if (group && status && request_ask(t, REQ_EXIT, (uint64_t)status, 0, 0) > 0)
		t->has_lane = 0;
	if (!t->has_lane)
		return serve_special(t, nr);
	if (group)
		births_wait(t);
	call_tell(t, w, nr);
	lead_settle(t);
	lane_close(&streams, t->lane);
	t->has_lane = 0;
	return group ? exit_group_now(t) : serve_special(t, nr);
}

long lead_life(struct thread *t, long nr, const struct walk *w)
{
	if (call_bears(w->desc))
		return lead_clone(t, nr);
	return call_ends(w->desc) ? lead_exit(t, nr, w) : lead_exec(t, nr, w);
}

/* What a clone of any form asks for; its descriptor's place among it. */
struct clone_args clone_asked(const struct thread *t, long nr)
{
	const struct frame *f = &t->frame;
	struct clone_args args = { 0 };
	uint64_t size = f->rsi < sizeof(args) ? f->rsi : sizeof(args);

	if (nr == __NR_clone) {
		args.flags = f->rdi;
		args.pidfd = args.parent_tid = f->rdx;
		args.child_tid = f->r10;
	} else if (nr == __NR_clone3) {
		target_in(&args, f->rdi, size);
	}
	return args;
}

bool clone_waits(const struct thread *t, long nr)
{
	return clone_asked(t, nr).flags & CLONE_VFORK;
}

/*
 * The kernel wrote its own id where the program looks for the one that it is to know.  Parent
 * and child both mend it, and whoever comes late changes nothing: the other may have
 * ended, and the kernel have cleared the word, or the program may have used it anew.
 */
static void id_mend(uint64_t at, int32_t real, int32_t id)
{
	if (at)
		target_swap(at, real, id);
}

void child_ids_find(struct thread *t, const struct clone_args *args)
{
	t->child_ptid = args->flags & CLONE_PARENT_SETTID ? args->parent_tid : 0;
	t->child_ctid = args->flags & CLONE_CHILD_SETTID ? args->child_tid : 0;
}

void child_ids_parent(const struct thread *t, int32_t real, int32_t id)
{
	id_mend(t->child_ptid, real, id);
}

void child_ids(const struct thread *c)
{
	if (c->clone_flags & CLONE_VM)
		id_mend(c->child_ptid, c->tid, c->vtid);
	id_mend(c->child_ctid, c->tid, c->vtid);
}

int64_t clone_pidfd(const struct thread *t, long nr)
{
	struct clone_args args = clone_asked(t, nr);
	int32_t fd = -1;

	if (args.flags & CLONE_PIDFD)
		target_in(&fd, args.pidfd, sizeof(fd));
	return fd;
}
