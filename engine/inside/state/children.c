/*
 * Children of a follower's process, by the ids that its leader's have: who they are, and that
 * a twin comes to its end before the program is told of the leader's.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/wait.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/inside/fd/table.h"
#include "engine/inside/gate/gate.h"
#include "engine/inside/gate/request.h"
#include "engine/inside/gate/thread.h"
#include "engine/inside/lanes/host.h"
#include "engine/inside/lanes/now.h"
#include "engine/inside/lanes/patience.h"
#include "engine/inside/signal/ucontext.h"
#include "engine/inside/state/children.h"
#include "engine/inside/state/ids.h"
#include "engine/inside/state/standin.h"

/*
 * Limit (threads and processes): children of one process that it has not waited for yet.
 * Beyond: a follower does not find the child that its leader has waited for, and is
 * dropped.
 */
#define CHILDREN	16384

/* Children that the program will wait for by the leader's ids. */
struct child {
	int32_t vpid, pid;	/* pid 0: the row is free; vpid 0: nobody finds it yet */
	uint32_t lane;		/* of its first thread */
	int32_t standin;	/* to the kernel our child in its place (standin.c); 0: itself */
};

_Static_assert(!(CHILDREN & (CHILDREN - 1)) && CHILDREN >= ROWS_PAGES, "ROWS_OF");

static struct rows children = ROWS_OF(struct child, CHILDREN);
static struct rows unreaped = ROWS_OF(int32_t, CHILDREN);	/* pids; 0: free */

LEADS static bool moved;	/* children are none of ours to the kernel: an image has gone on */
static int32_t parent;	/* nor is this one its parent's; 0: it is */

static struct child *child_at(uint32_t i)
{
	return rows_at(&children, i);
}

static int32_t *unreaped_at(uint32_t i)
{
	return rows_at(&unreaped, i);
}

static bool child_take(struct child *c, int32_t pid)
{
	int32_t none = 0;

	return BOTH_IF(child_pid, &c->pid, &none, pid);
}

void child_note(struct thread *t, int32_t vpid, int32_t pid, uint32_t lane)
{
	struct child *c = NULL;

	MUST(pid > 0 && lane <= LANES);	/* a row with the pid 0 is free */

	for (uint32_t i = 0; i < children.used && !c; i++)
		c = child_take(child_at(i), pid) ? child_at(i) : NULL;
	while (!c && (c = rows_more(&children)))
		c = child_take(c, pid) ? c : NULL;
	if (!c) {
		request_room(t, ROOM_CHILDREN, CHILDREN);
		return;
	}
	c->lane = lane;
	c->standin = 0;
	c->vpid = vpid;
}

/*
 * They are its parent's.  By the time that this process leads their ids may be others', who
 * would be killed.
 */
void children_fork(struct thread *t)
{
	(void)t;
	rows_clear(&children);
	rows_clear(&unreaped);
	if (moved)
		moved = false;
	if (parent)
		parent = 0;
}

void children_copied(void)
{
	rows_clear(&unreaped);
	moved = false;
	parent = 0;
}

static int32_t child_forget(int32_t vpid, uint32_t *lane)
{
	for (uint32_t i = 0; i < children.used; i++) {
		struct child *c = child_at(i);
		int32_t pid = c->pid;

		if (c->vpid != vpid || !pid)
			continue;
		c->vpid = 0;
		*lane = c->lane;
		PUBLISH(child_pid, &c->pid, 0);
		return pid;
	}
	return 0;
}

int32_t child_real(int32_t vpid)
{
	for (uint32_t i = 0; vpid > 0 && i < children.used; i++)
		if (child_at(i)->vpid == vpid && child_at(i)->pid)
			return child_at(i)->pid;
	return 0;
}

int32_t child_seen(int32_t pid)
{
	for (uint32_t i = 0; pid > 0 && i < children.used; i++)
		if (child_at(i)->pid == pid || (child_at(i)->pid && child_at(i)->standin == pid))
			return child_at(i)->vpid;
	return 0;
}

void children_each(void (*each)(int32_t vpid, int32_t pid))
{
	for (uint32_t i = 0; i < children.used; i++)
		if (child_at(i)->pid)
			each(child_at(i)->vpid, child_at(i)->pid);
}

void child_reused(int32_t pid)
{
	for (uint32_t i = 0; i < children.used; i++)
		if (child_at(i)->pid == pid)
			child_gone(child_at(i)->vpid);
}

int32_t child_waited(int32_t vpid)
{
	for (uint32_t i = 0; vpid > 0 && i < children.used; i++)
		if (child_at(i)->vpid == vpid && child_at(i)->pid)
			return child_at(i)->standin;
	return 0;
}

void child_gone(int32_t vpid)
{
	uint32_t lane;

	child_forget(vpid, &lane);
}

static int32_t child_find(int32_t vpid, uint32_t *lane)
{
	for (uint32_t i = 0; i < children.used; i++) {
		*lane = child_at(i)->lane;
		if (child_at(i)->vpid == vpid && child_at(i)->pid)
			return child_at(i)->pid;
	}
	return 0;
}

static int32_t moved_to(int32_t pid)
{
	const struct images *i = &brief()->images;

	for (uint32_t n = 0; n < i->moves && n < MOVES_MAX; n++)
		if (i->move[n].was == pid)
			return i->move[n].is;
	return pid;
}

static bool is_noted(int32_t pid)
{
	bool noted = false;

	for (uint32_t i = 0; i < children.used; i++)
		noted |= child_at(i)->pid == pid || child_at(i)->standin == pid;
	for (uint32_t i = 0; i < unreaped.used; i++)
		noted |= *unreaped_at(i) == pid;
	return noted;
}

/* Those that it made when it led were the kernel's to know: by the ids that they had then. */
static void children_adopt(struct thread *t)
{
	const struct images *i = &brief()->images;
	int32_t was = 0;

	for (uint32_t n = 0; n < i->moves && n < MOVES_MAX; n++)
		if (i->move[n].is == t->pid)
			was = i->move[n].was;
	for (uint32_t n = 0; n < i->moves && n < MOVES_MAX; n++)
		if (was && i->move[n].parent == was && !is_noted(i->move[n].was))
			child_note(t, i->move[n].was, i->move[n].was, LANES);
}

/* How one has ended whose own end was told by a stand-in, that knows as long as it is there. */
static void child_moved(struct child *c)
{
	c->pid = c->pid && c->standin && process_is_over(c->pid) ? c->standin : moved_to(c->pid);
	c->standin = 0;
}

int32_t children_moved(struct thread *t, int32_t was)
{
	int32_t is = moved_to(was);

	moved = true;
	parent = is == was ? 0 : is;
	children_adopt(t);
	for (uint32_t i = 0; i < children.used; i++) {
		child_moved(child_at(i));
	}
	for (uint32_t i = 0; i < unreaped.used; i++)
		*unreaped_at(i) = moved_to(*unreaped_at(i));
	return is;
}

int32_t parent_real(int32_t kernels)
{
	return parent && !process_is_over(parent) ? parent : kernels;
}

static bool reap(int32_t pid)
{
	long result = OWN4(__NR_wait4, pid, 0, WNOHANG, 0);

	return moved && result == -ECHILD ? process_is_over(pid) : result != 0;
}

/* It has come to its end, or is no child of ours. */
static bool is_over(int32_t pid)
{
	uint8_t info[SIGINFO_SIZE] = { 0 };
	long result = OWN6(__NR_waitid, P_PID, pid, info, WEXITED | WNOHANG | WNOWAIT, 0, 0);

	return moved && result == -ECHILD ? process_is_over(pid) :
	       result || info_int(info, INFO_PID);
}

/* The twins that had not ended when the leader's had. */
static void reap_late(int32_t add)
{
	MUST(add >= 0);
	for (uint32_t i = 0; i < unreaped.used || add; i++) {
		int32_t *pid = i < unreaped.used ? unreaped_at(i) : rows_more(&unreaped);

		if (!pid)
			return;
		if (*pid && reap(*pid))
			*pid = 0;
		if (!*pid && add) {
			*pid = add;
			add = 0;
		}
		if (!*pid && !add)
			break;
	}
}

/* One that has gone to another realm is read where we do not see it: the monitor does. */
static bool lane_is_read(uint32_t lane, int32_t pid)
{
	const struct section *own = streams_section(&streams, streams.self);
	const struct cursor *c = &own->cursor[lane % LANES];
	const struct lane *l = &streams_section(&streams, c->source % VERSIONS)->lane[lane % LANES];

	if (lane == LANES || (c->life == l->life && c->done == c->life))
		return request_ask(thread_self(), REQ_READ, (uint64_t)pid, 0, 0);
	return c->life != l->life || c->at >= __atomic_load_n(&l->head, __ATOMIC_RELAXED);
}

static bool child_asks(int32_t pid)
{
	const struct area *a = (const struct area *)boot.area;

	for (uint32_t i = 0; i < a->slots_high && i < AREA_THREADS; i++)
		if (a->slot[i].pid == pid && a->slot[i].owner &&
		    __atomic_load_n(&a->slot[i].asked, __ATOMIC_RELAXED) == RS_ASKED)
			return true;
	return false;
}

/*
 * It wants a processor, and has had less than it may have until its end, or it waits for the
 * monitor.
 */
static bool child_goes_on(struct thread *t, int32_t pid, uint64_t had)
{
	MUST(t == thread_self() && pid > 0);
	return clock_ns(process_clock(pid)) - had < wait_limit(WAIT_child) &&
	       (child_asks(pid) || request_ask(t, REQ_RUNS, 0, (uint64_t)pid, 0) > 0);
}

/*
 * What a child has done to memory that it shares is done when its end is told: so its
 * twin comes to its end first, unless something keeps it.  One that a signal has ended
 * in the leader will not come to an end by itself, but to where it was ended.
 */
static bool end_in_time(struct thread *t, int32_t pid, uint32_t lane, bool by_signal,
			bool (*over)(int32_t pid))
{
	uint64_t had = clock_ns(process_clock(pid));
	struct patience p = PATIENCE(WAIT_child);
	bool in_time;

	while (!(in_time = over(pid)) && !(by_signal && lane_is_read(lane, pid))) {
		if (patience_step(&p))
			continue;
		if (!child_goes_on(t, pid, had))
			break;
		patience_go_on(&p);
	}
	patience_end(&p);
	return in_time;
}

/*
 * A child that this version made when it led is in no row: the program has its id from the
 * kernel.  Whether it is one of ours the kernel says.  What one of other rights has read
 * we do not see.
 */
static int32_t child_led(int32_t vpid, uint32_t *lane)
{
	const struct area *a = (const struct area *)boot.area;

	*lane = LANES;
	for (uint32_t i = 0; i < a->slots_high && i < AREA_THREADS; i++)
		if (a->slot[i].owner == (uint32_t)vpid && a->slot[i].lane &&
		    (a->slot[i].lane - 1) / LANES == boot.realm)
			*lane = (a->slot[i].lane - 1) % LANES;
	return vpid;
}

/* The program hears of the ends of those that are none of ours to the kernel, too. */
static void standins_make(const struct thread *t)
{
	for (uint32_t i = 0; i < children.used; i++) {
		struct child *c = child_at(i);

		if (c->pid && c->vpid && !c->standin &&
		    OWN6(__NR_waitid, P_PID, c->pid, 0, WEXITED | WNOHANG | WNOWAIT, 0, 0) ==
			    -ECHILD)
			c->standin = standin_make(t, c->pid);
	}
}

/*
 * Twins that had not ended when the program was told that theirs had: to the kernel they
 * are children that it waits for.
 */
void children_settle(struct thread *t)
{
	if (moved)
		standins_make(t);
	for (uint32_t i = 0; i < unreaped.used; i++) {
		int32_t *pid = unreaped_at(i);
		struct patience p = PATIENCE(WAIT_reaped);

		if (!*pid)
			continue;
		MUST(*pid > 0);		/* -1 is everybody */
		OWN2(__NR_kill, *pid, 9);
		while (!reap(*pid) && patience_step(&p))
			;
		patience_end(&p);
		*pid = 0;
	}
}

void follow_reaped(struct thread *t, int32_t vpid, int32_t status)
{
	bool by_signal = (status & 0x7f) != 0, stopped = (status & 0xff) == 0x7f;
	uint32_t lane = 0;
	int32_t pid = 0;

	/* The leader's word: to the kernel, what is no id is a group, or everybody. */
	if (vpid <= 0)
		return;
	if (!stopped && status != 0xffff) {
		int32_t standin = child_waited(vpid);

		/* Of when it led. */
		if (standin)
			reap_late(standin);
		pid = child_forget(vpid, &lane);
	}
	if (!pid && !stopped && status != 0xffff && !ids_are_ours())
		pid = child_led(vpid, &lane);
	if (!pid || end_in_time(t, pid, lane, by_signal, reap))
		return;
	if (by_signal)
		OWN2(__NR_kill, pid, 9);
	reap_late(reap(pid) ? 0 : pid);
}

void follow_peeked(struct thread *t, int32_t vpid, int32_t status)
{
	uint32_t lane = 0;
	int32_t pid = child_find(vpid, &lane);

	if (pid)
		end_in_time(t, pid, lane, (status & 0x7f) != 0, is_over);
}
