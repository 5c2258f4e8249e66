/*
 * Signals that come early.  What is really sent to a follower is dropped, for the stream
 * brings what its leader's handlers saw.  But from the moment that its version leads it may
 * be meant: by its own threads and processes that have taken over before it, by the user, by
 * a child that ends.  What comes to a thread that has yet to read on is kept here, and sent
 * again by the first thread that leads, or by this one when it does.  In front of that comes
 * what had come to its twin and was not told: the monitor has found it (outside/takeover/untold.c).
 *
 * Natively they would wait in the kernel, up to RLIMIT_SIGPENDING; here in memory of ours,
 * chunk by chunk as they come.  What has no room there, or not in the kernel when it is sent
 * again, is said.
 *
 * Of children it is only kept that something came: those whose end the old leader was told
 * of are gone, and those that ended while nobody listened must not be missed.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/signal.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include <linux/wait.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/gate/block.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/memory.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/early.h"
#include "engine/inside/takeover/heir.h"
#include "engine/inside/takeover/standing.h"

#define CHUNK		1024	/* rows */
#define CHUNKS		(SIGNALS_WAIT / CHUNK)
#define SIGNALS_STANDARD 31	/* two of a kind are one */
#define ANY		0	/* waitid's P_ALL */
_Static_assert(SIGNALS_WAIT % CHUNK == 0, "rows_of() rows have chunks");

enum early_state { EARLY_NONE, EARLY_KEPT, EARLY_SENT };

struct early_row {
	uint32_t state;		/* enum early_state */
	int32_t tid;		/* it is for this thread; 0: for the process */
	uint8_t info[SIGINFO_USED];
};

/* What was the twin's is older than what came here. */
static struct early {
	uint32_t rows;		/* ever taken, since the process began to follow */
	struct early_row *chunk[CHUNKS];
} twins, own;
LEADS static uint32_t children, lost, waited;

/* The version leads, whatever its threads still have to read. */
bool early_may_come(void)
{
	return CONSUME(conduct_leader, &streams.conduct->leader) == streams.self ||
	       heir_failed(streams.self);
}

/* NULL: nothing has been kept there. */
static struct early_row *row_at(const struct early *e, uint32_t i)
{
	MUST(i < SIGNALS_WAIT);
	struct early_row *chunk = CONSUME(early_chunk, &e->chunk[i / CHUNK]);

	return chunk ? &chunk[i % CHUNK] : NULL;
}

static uint32_t rows_of(const struct early *e)
{
	uint32_t rows = __atomic_load_n(&e->rows, __ATOMIC_RELAXED);

	return rows < SIGNALS_WAIT ? rows : SIGNALS_WAIT;
}

static bool is_kept(const struct early *e, int32_t tid, int32_t sig)
{
	for (uint32_t i = 0; i < rows_of(e); i++) {
		const struct early_row *row = row_at(e, i);

		/* The row is whole. */
		if (row && CONSUME(early_state, &row->state) == EARLY_KEPT &&
		    row->tid == tid && info_int(row->info, INFO_SIGNO) == sig)
			return true;
	}
	return false;
}

/* Threads may come to the same chunk; NULL: there is no room. */
static struct early_row *row_make(struct early *e)
{
	uint32_t i = __atomic_fetch_add(&e->rows, 1, __ATOMIC_RELAXED);
	struct early_row *none = NULL;
	long at;

	if (i >= SIGNALS_WAIT)
		return NULL;
	if (row_at(e, i))
		return row_at(e, i);
	at = own_map(CHUNK * sizeof(*none));
	if (at < 0)
		return NULL;
	if (!BOTH_IF(early_chunk, &e->chunk[i / CHUNK], &none, (struct early_row *)at))
		OWN2(__NR_munmap, at, CHUNK * sizeof(*none));
	return row_at(e, i);
}

static void keep(struct early *e, int32_t tid, const uint8_t *info)
{
	int32_t sig = info_int(info, INFO_SIGNO);
	struct early_row *row;

	if (sig <= SIGNALS_STANDARD && is_kept(e, tid, sig))
		return;
	row = row_make(e);
	if (!row) {
		__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
		return;
	}
	bytes_copy(row->info, info, SIGINFO_USED);
	row->tid = tid;
	PUBLISH(early_state, &row->state, EARLY_KEPT);
}

/* In a signal handler. */
void early_note(const struct thread *t, const uint8_t *info)
{
	if (info_int(info, INFO_SIGNO) == SIGCHLD)
		PUBLISH(early_children, &children, 1);
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
		if (result == -EAGAIN)
			__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
		if (result != -EPERM)
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
	for (uint32_t i = 0; i < rows_of(e); i++) {
		struct early_row *row = row_at(e, i);
		uint8_t info[SIGINFO_SIZE] = { 0 };
		uint32_t kept = EARLY_KEPT;

		if (!row || (row->tid && row->tid != t->tid) ||
		    !BOTH_IF(early_state, &row->state, &kept, EARLY_SENT))
			continue;
		bytes_copy(info, row->info, SIGINFO_USED);
		send(t, row->tid, info);
	}
}

/* It is the leader no more: what waits has been moved. */
void early_drain(void)
{
	uint64_t all = ALL_SIGNALS & ~HIDDEN_SIGNALS;
	struct __kernel_timespec now = { 0, 0 };
	uint8_t info[SIGINFO_SIZE];

	for (uint32_t n = 0; n < SIGNALS_WAIT; n++)
		if (OWN4(__NR_rt_sigtimedwait, &all, info, &now, 8) <= 0)
			return;
}

/* What has come since and is blocked waits in the kernel, behind what is older. */
static void waiting_take(const struct thread *t)
{
	uint64_t real_time = ~0ull << SIGNALS_STANDARD;
	struct __kernel_timespec now = { 0, 0 };
	uint8_t info[SIGINFO_SIZE] = { 0 };

	for (uint32_t n = rows_of(&twins); n < SIGNALS_WAIT; n++) {
		if (OWN4(__NR_rt_sigtimedwait, &real_time, info, &now, 8) <= 0)
			return;
		keep(&own, info_int(info, INFO_CODE) == SI_TKILL ? t->tid : 0, info);
	}
}

/* The thread is about to lead.  None comes before early_over. */
uint64_t early_come(struct thread *t)
{
	uint64_t was;
	uint32_t n;

	was = signals_block(t);
	if (rows_of(&twins) && !__atomic_exchange_n(&waited, 1, __ATOMIC_RELAXED))
		waiting_take(t);
	all_send(t, &twins);
	all_send(t, &own);
	if (CONSUME_BY(early_children, exchange_n, &children, 0))
		child_tell(t);
	n = __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED);
	if (n)
		request_ask(t, REQ_NOTE, NOTE_SIGNALS, n, 0);
	return was;
}

/* It leads. */
void early_over(struct thread *t, uint64_t mask)
{
	turn_begin(t);
	/* It is to stand, as it was asked meanwhile, and then unblocks. */
	if (t->pending)
		t->held_mask = mask;
	else
		OWN4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
	turn_end(t);
	change_wake();
}

/* --- those who send ------------------------------------------------------------------ */

/* A thread of it has begun its lane: what came before this takeover has been sent to it. */
static bool has_led(int32_t pid)
{
	const struct area *a = (const struct area *)boot.area;
	const struct section *s = streams_section(&streams, streams.self);
	bool led = true;

	for (uint32_t i = 0; i < a->slots_high && i < AREA_THREADS; i++) {
		uint32_t lane = a->slot[i].lane - 1;

		if (a->slot[i].pid != pid || !a->slot[i].owner || lane >= LANES)
			continue;
		led = s->lane[lane].pid == pid;
		if (led)
			return true;
	}
	return led;
}

/*
 * The program sends one of its processes a signal.  That may have to hear first of what came
 * to its twin, perhaps by the same sender.
 */
void early_wait(int32_t pid)
{
	struct patience p = PATIENCE(WAIT_early);

	while (pid > 0 && !has_led(pid) && OWN2(__NR_kill, pid, 0) >= 0 && !standing_wanted() &&
	       patience_step(&p))
		;
	patience_end(&p);
}

/* Children may have ended while the process heard of nothing. */
void early_begin(struct thread *t)
{
	(void)t;
	PUBLISH(early_children, &children, 1);
}

/* Its chunks stay. */
static void rows_forget(struct early *e)
{
	if (!e->rows)
		return;
	for (uint32_t i = 0; i < rows_of(e); i++)
		if (row_at(e, i))
			row_at(e, i)->state = EARLY_NONE;
	e->rows = 0;
}

/* It follows, or is a child, whose signals are its own. */
void early_forget(struct thread *t)
{
	(void)t;
	rows_forget(&twins);
	rows_forget(&own);
	if (children | lost | waited)
		children = lost = waited = 0;
}
