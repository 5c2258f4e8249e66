/*
 * Signals that came to the old leader and were not told: its threads stand, and block
 * what comes, so it waits in the kernel, or in the inside (slot.untold).  Followers know of
 * none of it, yet the stream may say that one was sent (kill).  So each process that takes
 * over gets what waits in its twin, with its descriptors, and hears of it when it leads.
 *
 * They are looked for once, when the old leader stands and before anything of it ends:
 * what comes then comes of that.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/given.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/session/seize.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/taking.h"
#include "engine/outside/takeover/untold.h"

#define STOP_US		20000	/* that the old leader has (given.c) */
#define LOOK_NS		20000
#define SIG_BIT(s)	(1ull << ((s) - 1))
#define SIGNALS		64
#define PEEKED		256	/* signals that are read at a time */
#define ROOM_FIRST	64

/*
 * Not these: mve's own, those that nobody hears of, and of children, who end once more in
 * the successor (early.c).
 */
#define NOT_MOVED	(SIG_BIT(SIGILL) | SIG_BIT(SIGBUS) | SIG_BIT(SIGSEGV) | SIG_BIT(SIGSYS) | \
			 SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP) | SIG_BIT(SIGCHLD))

static struct untold *row_make(struct move *mv)
{
	unsigned room = mv->untold_room ? mv->untold_room * 2 : ROOM_FIRST;
	struct untold *more;

	if (mv->untolds == SIGNALS_WAIT)
		return NULL;
	if (mv->untolds == mv->untold_room) {
		more = realloc(mv->untold, room * sizeof(*more));
		if (!more)
			return NULL;
		mv->untold = more;
		mv->untold_room = room;
	}
	MUST(mv->untolds < mv->untold_room);
	return &mv->untold[mv->untolds++];
}

static void note(struct move *mv, pid_t pid, int32_t lane, const siginfo_t *info)
{
	struct untold *u;

	_Static_assert(sizeof(u->row.info) <= sizeof(*info), "its head");

	if (info->si_signo < 1 || info->si_signo > SIGNALS ||
	    SIG_BIT(info->si_signo) & NOT_MOVED)
		return;
	u = row_make(mv);
	if (!u) {
		mv->untold_lost++;
		return;
	}
	u->pid = pid;
	u->row.lane = lane;
	memcpy(u->row.info, info, sizeof(u->row.info));
	say_log("take", "signal %d (%d) waits for process %d, lane %d", info->si_signo,
		info->si_value.sival_int, pid, lane);
}

/* --- in the inside -------------------------------------------------------------------- */

static void held_note(struct move *mv, const struct slot *s, pid_t pid)
{
	siginfo_t info = { 0 };

	memcpy(&info, s->untold, sizeof(s->untold));
	note(mv, pid, info.si_code == SI_TKILL ? (int32_t)s->lane - 1 : -1, &info);
}

/* --- in the kernel -------------------------------------------------------------------- */

/* False: the thread is gone. */
static bool pending_read(struct move *mv, pid_t pid, pid_t tid, uint64_t *own, uint64_t *shared)
{
	struct thread_status s;

	if (!thread_status(pid, tid, &s))
		return false;
	/* Who fetches its descriptors would look at the same. */
	if (pid == tid && pid == mv->process[0])
		mv->stood = (struct stood){ pid, s.table, s.threads };
	*own = s.pending & ~NOT_MOVED;
	*shared = s.shared & ~NOT_MOVED;
	return true;
}

static bool stops(const struct version *v, pid_t tid)
{
	struct timespec look = { 0, LOOK_NS };
	struct given time;
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
		return false;
	given_begin(&time, v, STOP_US);
	for (; !given_past(&time); nanosleep(&look, NULL)) {
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got)
			return got == tid && WIFSTOPPED(status);
	}
	return false;
}

static void queue_read(struct move *mv, pid_t pid, pid_t tid, int32_t lane, bool shared)
{
	siginfo_t info[PEEKED];
	struct __ptrace_peeksiginfo_args args = {
		.flags = shared ? PTRACE_PEEKSIGINFO_SHARED : 0, .nr = PEEKED,
	};
	long n;

	for (; args.off < SIGNALS_WAIT; args.off += (uint64_t)n) {
		n = ptrace(PTRACE_PEEKSIGINFO, tid, &args, info);
		if (n <= 0)
			return;
		for (long i = 0; i < n; i++)
			note(mv, pid, shared ? -1 : lane, &info[i]);
	}
}

/* Their numbers are known: of whom they are must do without. */
static void numbers_note(struct move *mv, pid_t pid, int32_t lane, uint64_t set)
{
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (set & SIG_BIT(sig))
			note(mv, pid, lane, &(siginfo_t){ .si_signo = sig });
}

static void queues_note(struct move *mv, pid_t pid, pid_t tid, int32_t lane, uint64_t own,
			uint64_t shared)
{
	bool seized = !thread_seize(tid, 0), read = seized && stops(mv->from, tid);

	if (read && own)
		queue_read(mv, pid, tid, lane, false);
	if (read && shared)
		queue_read(mv, pid, tid, lane, true);
	if (seized)
		ptrace(PTRACE_DETACH, tid, 0, 0);
	if (read)
		return;
	numbers_note(mv, pid, lane, own);
	numbers_note(mv, pid, -1, shared);
}

/* What waits for the process is read once, with the thread that comes first. */
static bool is_first(const struct move *mv, uint32_t slot, pid_t pid)
{
	for (uint32_t i = 0; i < slot; i++)
		if (mv->from->area->slot[i].owner && mv->from->area->slot[i].pid == pid)
			return false;
	return true;
}

/* `tid` is a thread of the process, or pending_read finds nothing. */
static void slot_look(struct move *mv, uint32_t i, pid_t pid, pid_t tid)
{
	const struct slot *s = &mv->from->area->slot[i];
	uint64_t own, shared;

	held_note(mv, s, pid);
	if (!pending_read(mv, pid, tid, &own, &shared))
		return;
	if (!is_first(mv, i, pid))
		shared = 0;
	if (own | shared)
		queues_note(mv, pid, tid, (int32_t)s->lane - 1, own, shared);
}

void untold_look(struct monitor *m)
{
	struct move *mv = &m->move;

	mv->stood = (struct stood){ 0 };
	for (uint32_t i = 0; i < version_slots(mv->from); i++) {
		const struct slot *s = &mv->from->area->slot[i];

		pid_t pid = s->pid, tid = (pid_t)s->owner;	/* read once */

		if (tid > 0 && !s->unheld && takeover_stands(m, mv->from, pid))
			slot_look(mv, i, pid, tid);
	}
	if (mv->untold_lost)
		say_error(NULL, "%s: %u signals that %s had not heard of are lost",
			  m->session.name, mv->untold_lost, mv->from->name);
	mv->untold_lost = 0;
}

/* --- for the successor ---------------------------------------------------------------- */

/* The process that has the place of the sender. */
static void sender_mend(struct monitor *m, siginfo_t *info)
{
	const struct move *mv = &m->move;
	uint32_t from = mv->from->index;

	if (info->si_code != SI_USER && info->si_code != SI_TKILL && info->si_code != SI_QUEUE)
		return;
	LANES_EACH(m, from, i) {
		const struct lane *l = lane_at(m, from, i);
		pid_t is = cursor_at(m, mv->to->index, i)->pid;

		if (l->pid == info->si_pid && l->state == LANE_OPEN && is > 0 && info->si_pid > 0) {
			info->si_pid = is;
			return;
		}
	}
}

unsigned untold_take(struct monitor *m, pid_t twin, unsigned *at, struct taken_signal *row,
		     unsigned room)
{
	struct move *mv = &m->move;
	unsigned n = 0;

	for (; *at < mv->untolds && n < room; (*at)++) {
		struct untold *u = &mv->untold[*at];
		siginfo_t info = { 0 };

		if (u->pid != twin)
			continue;
		u->pid = 0;
		row[n] = u->row;
		memcpy(&info, row[n].info, sizeof(row[n].info));
		sender_mend(m, &info);
		memcpy(row[n++].info, &info, sizeof(row[n].info));
	}
	return n;
}
