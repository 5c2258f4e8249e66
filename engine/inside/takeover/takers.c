/*
 * Which of a version's processes have taken what the old leader had.  One thread of a process
 * does it (state/take.c), the others wait for it.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/futex.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/latch.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/takeover/takers.h"

#define TAKERS		AREA_THREADS	/* a process has a thread at least */

enum taking { TAKE_NOT, TAKE_BUSY, TAKE_DONE };

/*
 * A row for each process that shares this memory: each has descriptors of its own.  What the
 * memory holds is put right by the one whose it is.
 */
static struct taker {
	int32_t pid;
	uint32_t state;		/* enum taking; futex */
} takers[TAKERS];
LEADS static uint32_t takers_high;	/* rows below have been used */

/* The first is taken while clients wait. */
void takers_ready(void)
{
	leads_also(takers);
}

static struct taker *row_find(int32_t pid)
{
	uint32_t high = CONSUME(takers_high, &takers_high);

	for (struct taker *r = takers; r < takers + high; r++)
		if (CONSUME(taker_pid, &r->pid) == pid)
			return r;
	return NULL;
}

/* A new one, or that of a process which is gone: there are fewer others than rows. */
static struct taker *row_room(void)
{
	struct taker *r = takers;

	while (r < takers + takers_high && OWN2(__NR_kill, r->pid, 0) != -ESRCH)
		r++;
	return r < takers + TAKERS ? r : takers;
}

/* Its row; of those that are gone another is made.  Forks do not come between: the latch. */
static struct taker *taker_of(const struct thread *t)
{
	struct taker *r = row_find(t->pid);

	if (r)
		return r;
	latch_take(LATCH_blocks);
	r = row_find(t->pid);
	if (!r) {
		r = row_room();
		r->state = TAKE_NOT;
		PUBLISH(taker_pid, &r->pid, t->pid);
		if (r == takers + takers_high)
			PUBLISH(takers_high, &takers_high, takers_high + 1);
	}
	latch_give(LATCH_blocks);
	return r;
}

/* Before this process follows again. */
void take_reset(struct thread *t)
{
	PUBLISH(taker_state, &taker_of(t)->state, TAKE_NOT);
}

/* The rows are of others, and perhaps of one that had our id. */
void take_fork(struct thread *t)
{
	(void)t;
	if (!takers_high)
		return;		/* a child's memory is its parent's till it is written */
	bytes_zero(takers, takers_high * sizeof(takers[0]));
	takers_high = 0;
}

bool take_is_done(void)
{
	const struct taker *r = row_find(thread_self()->pid);

	return r && __atomic_load_n(&r->state, __ATOMIC_RELAXED) == TAKE_DONE;
}

/* Another thread of the process takes; there may be hundreds, and it needs the processor. */
static void taker_wait(struct taker *r)
{
	struct __kernel_timespec look = { 0, PAUSE_WOKEN_NS };

	while (CONSUME(taker_state, &r->state) == TAKE_BUSY)
		OWN4(__NR_futex, &r->state, FUTEX_WAIT, TAKE_BUSY, &look);
}

void take_end(struct taker *r)
{
	MUST(r->state == TAKE_BUSY);
	/* The others' calls find the descriptors. */
	PUBLISH(taker_state, &r->state, TAKE_DONE);
	OWN3(__NR_futex, &r->state, FUTEX_WAKE, 1 << 30);
}

struct taker *take_begin(struct thread *t)
{
	struct taker *r = taker_of(t);
	uint32_t now = TAKE_NOT;

	MUST(t->following && t == thread_self());

	if (BOTH_IF(taker_state, &r->state, &now, TAKE_BUSY))
		return r;
	if (now == TAKE_BUSY)
		change_wake();	/* the one that takes may wait for this lane's end */
	taker_wait(r);
	return NULL;
}
