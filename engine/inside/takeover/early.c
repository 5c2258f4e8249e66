/*
 * Signals that come early.  What is really sent to a follower is dropped, for the stream
 * brings what its leader's handlers saw.  But from the moment that its version leads it may
 * be meant: by its own threads and processes that have taken over before it, by the user, by
 * a child that ends.  What comes to a thread that has yet to read on is kept here, and sent
 * again by the first thread that leads, or by this one when it does.  In front of that comes
 * what had come to its twin and was not told: the monitor has found it (outside/takeover/untold.c).
 *
 * Of children it is only kept that something came: those whose end the old leader was told
 * of are gone, and those that ended while nobody listened must not be missed.
 */
#include <asm/unistd.h>
#include <linux/signal.h>
#include <linux/wait.h>

#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/record/host.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/takeover/early.h"

#define EARLY		64
#define SIGNALS_STANDARD 31	/* two of a kind are one */
#define ANY		0	/* waitid's P_ALL */

enum early_state { EARLY_NONE, EARLY_KEPT, EARLY_SENT };

/* What was the twin's is older than what came here. */
static struct early {
	uint32_t rows;		/* ever taken, since the process began to follow */
	struct early_row {
		uint32_t state;		/* enum early_state */
		int32_t tid;		/* it is for this thread; 0: for the process */
		uint8_t info[SIGINFO_USED];
	} row[EARLY];
} twins, own;
static uint32_t children;

/* The version leads, whatever its threads still have to read. */
bool early_may_come(void)
{
	/* Acquire: pairs with the monitor's release when it switches streams. */
	return __atomic_load_n(&streams.conduct->leader, __ATOMIC_ACQUIRE) == streams.self;
}

static bool is_kept(const struct early *e, int32_t tid, int32_t sig)
{
	for (uint32_t i = 0; i < EARLY; i++)
		/* Acquire: pairs with keep; the row is whole. */
		if (__atomic_load_n(&e->row[i].state, __ATOMIC_ACQUIRE) == EARLY_KEPT &&
		    e->row[i].tid == tid && info_int(e->row[i].info, INFO_SIGNO) == sig)
			return true;
	return false;
}

static void keep(struct early *e, int32_t tid, const uint8_t *info)
{
	int32_t sig = info_int(info, INFO_SIGNO);
	struct early_row *row;
	uint32_t i;

	if (sig <= SIGNALS_STANDARD && is_kept(e, tid, sig))
		return;
	i = __atomic_fetch_add(&e->rows, 1, __ATOMIC_RELAXED);
	if (i >= EARLY)
		return;
	row = &e->row[i];
	bytes_copy(row->info, info, SIGINFO_USED);
	row->tid = tid;
	/* Release: pairs with all_send. */
	__atomic_store_n(&row->state, EARLY_KEPT, __ATOMIC_RELEASE);
}

/* In a signal handler. */
void early_note(const struct thread *t, const uint8_t *info)
{
	if (info_int(info, INFO_SIGNO) == SIGCHLD)
		__atomic_store_n(&children, 1, __ATOMIC_RELEASE);
	else
		keep(&own, info_int(info, INFO_CODE) == SI_TKILL ? t->tid : 0, info);
}

void early_take(int32_t tid, const uint8_t *info)
{
	keep(&twins, tid, info);
}

/*
 * In the name of who sent it: the kernel lets a thread say so to itself only, and the first
 * one to the process.
 */
static void send(const struct thread *t, int32_t tid, uint8_t *info)
{
	int32_t sig = info_int(info, INFO_SIGNO);

	for (int i = 0; i < 2; i++) {
		long result = tid ? OWN4(__NR_rt_tgsigqueueinfo, t->pid, tid, sig, info)
				  : OWN3(__NR_rt_sigqueueinfo, t->pid, sig, info);

		if (!result)
			return;
		*(int32_t *)(info + INFO_CODE) = SI_QUEUE;
	}
}

static void child_tell(const struct thread *t)
{
	uint8_t info[SIGINFO_SIZE] = { 0 };

	OWN6(__NR_waitid, ANY, 0, info, WEXITED | WNOHANG | WNOWAIT | __WALL, 0, 0);
	if (info_int(info, INFO_PID))
		send(t, 0, info);
}

static void all_send(const struct thread *t, struct early *e)
{
	for (struct early_row *row = e->row; row < e->row + EARLY; row++) {
		uint8_t info[SIGINFO_SIZE] = { 0 };
		uint32_t kept = EARLY_KEPT;

		if ((row->tid && row->tid != t->tid) ||
		    /* Acquire: pairs with keep. */
		    !__atomic_compare_exchange_n(&row->state, &kept, EARLY_SENT, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		bytes_copy(info, row->info, SIGINFO_USED);
		send(t, row->tid, info);
	}
}

/* The thread leads. */
void early_come(const struct thread *t)
{
	all_send(t, &twins);
	all_send(t, &own);
	if (__atomic_exchange_n(&children, 0, __ATOMIC_ACQUIRE))
		child_tell(t);
}

/* Children may have ended while the process heard of nothing. */
void early_begin(void)
{
	__atomic_store_n(&children, 1, __ATOMIC_RELEASE);
}

/* It follows, or is a child, whose signals are its own. */
void early_forget(void)
{
	bytes_zero(&twins, sizeof(twins));
	bytes_zero(&own, sizeof(own));
	children = 0;
}
