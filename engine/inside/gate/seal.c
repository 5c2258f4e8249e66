/*
 * The seal.  As long as all code of a program is known, every call in it jumps
 * to the gate or is marked, so the net has nothing to catch, and the kernel is
 * not asked to look: that is what makes a patched call cost as little as it
 * does.  The program is sealed.
 *
 * Before code may exist that nobody has seen (memory that becomes executable, a
 * file that the planner does not fully understand) the seal is broken for good:
 * every thread of the process is armed, that is, told to the kernel's dispatch,
 * before the call that brings the new code returns.
 *
 * Bytes of a call in the midst of a library's tables are most likely data that
 * nobody will ever run.  Their pages are watched: not executable until somebody
 * does, and then the seal is broken first.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/signal.h>

#include "engine/abi/knock.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/seal.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/rules/rules_object.h"
#include "engine/inside/signal/ucontext.h"

#define PAGE		4096ull
#define WATCHED_MAX	256

static uint64_t watched[WATCHED_MAX];
static uint32_t watched_n;

static void arm(struct thread *t)
{
	MUST(t == thread_self());	/* the kernel arms who calls */
	t->armed = 1;
	own_call(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
		 (long)boot.text, (long)boot.text_len, 0, 0);
}

static bool sealed(void)
{
	return LOOK(seal, &boot.sealed) == SEAL_WHOLE;
}

/* For a thread that begins: armed unless the program is sealed. */
void seal_arm(struct thread *t)
{
	t->armed = 0;
	if (!sealed())
		arm(t);
}

/* In the handler of a thread that another asked to arm itself. */
void seal_arm_wanted(struct thread *t)
{
	arm(t);
	/* The thread that broke the seal goes on after it. */
	PUBLISH(arm_wanted, &t->arm_wanted, 0);
}

static long knock(const struct thread *o)
{
	uint8_t info[SIGINFO_SIZE];

	bytes_zero(info, sizeof(info));
	*(int32_t *)(info + INFO_SIGNO) = SIGSYS;
	*(int32_t *)(info + INFO_CODE) = KNOCK_CODE;
	return OWN4(__NR_rt_tgsigqueueinfo, o->pid, o->tid, SIGSYS, info);
}

/* Waits until the other thread is armed, or is no more. */
static void arm_other(struct thread *o)
{
	MUST(o != thread_self());	/* it would wait for itself */
	PUBLISH(arm_wanted, &o->arm_wanted, 1);
	if (knock(o) < 0)
		return;
	while (CONSUME(arm_wanted, &o->arm_wanted) &&
	       OWN3(__NR_tgkill, o->pid, o->tid, 0) == 0)
		OWN0(__NR_sched_yield);
}

/* Arms every other thread of this process. */
static void arm_others(struct thread *t)
{
	for (uint32_t i = 0; i < AREA_THREADS; i++) {
		struct thread *o = block_live(i);

		/* vfork's parent runs nothing meanwhile, and looks when it does. */
		if (o && o != t && o->pid == t->pid && !o->in_vfork &&
		    LOOK(seal, &o->tid))
			arm_other(o);
	}
}

/* One word says what is broken and what is under way: who comes second waits for the first. */
void seal_break(struct thread *t)
{
	uint32_t was = SEAL_WHOLE;
	bool first = ANNOUNCE_IF(seal, &boot.sealed, &was, SEAL_BREAKING);

	if (!t->armed)
		arm(t);
	if (first) {
		((struct area *)boot.area)->unsealed[boot.image % AREA_IMAGES] = 1;
		arm_others(t);
		PUBLISH(seal_broken, &boot.sealed, SEAL_BROKEN);
	}
	/* New code waits until all are armed. */
	while (CONSUME(seal_broken, &boot.sealed) == SEAL_BREAKING) {
		if (t->arm_wanted)
			seal_arm_wanted(t);
		OWN0(__NR_sched_yield);
	}
}

/* Whoever breaks it for the parent arms the parent's threads; this one arms itself. */
void seal_fork(struct thread *t)
{
	(void)t;
	if (boot.sealed == SEAL_BREAKING)
		boot.sealed = SEAL_BROKEN;
}

/* vfork's parent goes on: its child may have broken the seal meanwhile. */
void seal_look(struct thread *t)
{
	if (sealed() || t->armed)
		return;
	arm(t);
	arm_others(t);
}

bool guard_take(uint64_t page)
{
	if (watched_n == WATCHED_MAX ||
	    OWN3(__NR_mprotect, page, PAGE, PROT_READ) < 0)
		return false;
	watched[watched_n] = page;
	MUST(watched_n < WATCHED_MAX);
	/* A thread that faults there finds it. */
	PUBLISH(watched, &watched_n, watched_n + 1);
	return true;
}

/* Watches a page of new code; the caller holds the latch of mappings. */
void guard_add(struct thread *t, uint64_t page)
{
	MUST(latch_is_held(LATCH_map));
	if (!guard_take(page))
		seal_break(t);
}

/* Somebody runs code on a watched page: true, and it may go on. */
bool guard_met(struct thread *t, uint64_t address)
{
	uint32_t n = CONSUME(watched, &watched_n);

	for (uint32_t i = 0; i < n; i++) {
		if (watched[i] != (address & ~(PAGE - 1)))
			continue;
		seal_break(t);
		OWN3(__NR_mprotect, watched[i], PAGE, PROT_READ | PROT_EXEC);
		return true;
	}
	return false;
}

/* They are as the program's file has them: we leave. */
void guards_end(void)
{
	for (uint32_t i = 0; i < watched_n; i++)
		OWN3(__NR_mprotect, watched[i], PAGE, PROT_READ | PROT_EXEC);
	watched_n = 0;
}
