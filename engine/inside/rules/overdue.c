/*
 * A leader's signal that waits for the next boundary waits for so long and no
 * longer: a program may compute for hours, or loop until its handler has run.  Each
 * thread that has such a signal has a timer of ours, which comes as a SIGSYS.  What
 * counts is how long the thread has run: one that waits for a processor would have come
 * to its next call long ago, and there followers can be told.
 *
 * The timer is made when a thread first needs it.  A child of fork has none, nor
 * has a new program.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>
#include <linux/time_types.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/rules/overdue.h"

#define THREAD_ID	4	/* SIGEV_THREAD_ID */
#define MONOTONIC	1
#define THREAD_CPU	3

struct timer_event {
	uint64_t value;
	int32_t signo, notify, tid;
	int32_t pad[11];
};

static bool timer_set(struct thread *t, long long ns)
{
	struct __kernel_itimerspec when = { { 0, 0 }, { 0, ns } };

	MUST(t->timer > 0 && ns >= 0 && ns < 1000000000);

	return OWN4(__NR_timer_settime, t->timer - 1, 0, &when, 0) == 0;
}

static bool timer_make(struct thread *t)
{
	struct timer_event e = { .signo = SIGSYS, .notify = THREAD_ID, .tid = t->tid };
	int32_t id;

	if (t->timer)
		return true;
	MUST(t == thread_self());	/* its signal is for who makes it */
	if (OWN3(__NR_timer_create, MONOTONIC, &e, &id) < 0)
		return false;
	t->timer = id + 1;
	return true;
}

/* False: nobody would look after the signal, so it must not wait. */
bool overdue_begin(struct thread *t)
{
	t->deferred_cpu = clock_ns(THREAD_CPU);
	return timer_make(t) && timer_set(t, DEFER_NS);
}

/* The time is over, but the thread was given too little of it. */
bool overdue_again(struct thread *t)
{
	uint64_t ran = clock_ns(THREAD_CPU) - t->deferred_cpu;

	return ran < DEFER_NS && timer_set(t, (long long)(DEFER_NS - ran));
}

void overdue_end(struct thread *t)
{
	if (t->timer)
		timer_set(t, 0);
}

/* The thread ends: so does what it has in the kernel. */
void overdue_forget(struct thread *t)
{
	if (t->timer)
		OWN1(__NR_timer_delete, t->timer - 1);
	t->timer = 0;
}
