/*
 * A process of the successor takes its twin's descriptors: we fetch them from
 * the twin, which stands still, and send them on by the successor's own socket.
 * It is we who fetch, because a server that has given up its rights may not look
 * into another process.
 *
 * The twin is the process that the lane belonged to in the version that led
 * before, or, when that one failed before it had taken anything, in the one
 * before it: a lane gets its pid only after its process has taken.
 *
 * Then it waits among the takers (takers.c).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/rights.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"
#include "engine/outside/takeover/taking.h"

#define SEND_WAIT_US	1000000

/* --- the twin ----------------------------------------------------------------------- */

struct version *taken_before(struct monitor *m, const struct version *v)
{
	/* A version's next is set when it is replaced: look for who points here. */
	for (unsigned i = 0; i < m->versions; i++)
		if (m->version[i].state == VERSION_LEAVES && m->conduct->next[i] == v->index)
			return &m->version[i];
	return NULL;
}

/* A thread that sleeps while it should lead has not begun its lane: any lane will do. */
static pid_t lane_process(struct monitor *m, const struct version *v, const struct version *asker,
			  pid_t pid, uint32_t lane)
{
	const struct lane *l = lane_at(m, v->index, lane);

	if (l->pid > 0)
		return l->pid;
	LANES_EACH(m, v->index, i) {
		l = lane_at(m, v->index, i);
		if (cursor_at(m, asker->index, i)->pid == pid && l->state == LANE_OPEN &&
		    l->pid > 0)
			return l->pid;
	}
	return 0;
}

/*
 * It failed while its processes were still taking, and another is to lead: what they take
 * until they stand is of the move before.
 */
static bool is_replaced(const struct monitor *m, const struct version *asker)
{
	return m->move.from == asker;
}

/* The version and process that still hold the descriptors of the asker's twin. */
static struct version *holder(struct monitor *m, const struct version *asker, pid_t asks,
			      uint32_t lane, pid_t *pid)
{
	struct version *v = is_replaced(m, asker) ? taken_before(m, asker) : m->move.from;

	MUST(v != asker);
	*pid = 0;

	for (unsigned hops = 0; v && hops < VERSIONS; hops++, v = taken_before(m, v)) {
		*pid = lane_process(m, v, asker, asks, lane);
		if (*pid > 0 && (takeover_stands(m, v, *pid) || version_owns(v, *pid, *pid)))
			return v;
	}
	return NULL;
}

/* It tells in a lane of its own. */
static bool leads_already(struct monitor *m, const struct version *v, pid_t pid)
{
	LANES_EACH(m, v->index, i)
		if (lane_at(m, v->index, i)->pid == pid)
			return true;
	return false;
}

/* --- all that it has ------------------------------------------------------------------------ */

uint64_t take_prepare(struct monitor *m, pid_t twin)
{
	uint64_t begin = now_us();

	fetch_drop();
	fetch_begin(m, twin);
	return now_us() - begin;
}

void take_over(void)
{
	fetch_end();
}

/* How many descriptors it was, or -errno. */
static int64_t take(struct monitor *m, struct taker *to)
{
	const struct request *r = &to->request;
	struct taking *k = fetch_begin(m, to->twin);
	int64_t n;

	MUST(r->pid > 0 && to->twin > 0 && r->pid != to->twin);

	k->pid = r->pid;
	k->socket = to->socket >= 0 ? to->socket : asker_socket(r->pid, (int)r->args[0]);
	k->wait_us = SEND_WAIT_US;
	k->leads = to->told;
	n = k->socket;
	if (k->socket >= 0)
		n = kinds_send(m, k);
	to->socket = k->socket;
	n = n < 0 ? n : fetched();
	fetch_end();
	return n;
}

/*
 * Each twin is taken from once: over and over a worker would hold us up, or make it look
 * as if those had taken that have yet to.
 */
static bool twin_note(struct move *mv, pid_t twin)
{
	for (unsigned i = 0; i < mv->sent && i < MOVE_PROCESSES; i++)
		if (mv->twin[i] == twin)
			return false;
	if (mv->sent < MOVE_PROCESSES)
		mv->twin[mv->sent] = twin;
	mv->sent++;
	return true;
}

static void sent_note(struct move *mv, int64_t n, uint64_t begin_us)
{
	MUST(mv->began_us <= now_us());
	mv->descriptors += n > 0 ? (unsigned)n : 0;
	mv->taken_us += now_us() - begin_us;
}

/* --- who asks ------------------------------------------------------------------------------- */

/* It is refused at once, and nothing has been sent. */
static int64_t take_refuse(struct version *v, const struct request *r, int why, bool twin)
{
	if (why != -EALREADY && version_may_say(v))
		say_error(NULL, "%s/%s: cannot take descriptors: pid %d: %s",
			  v->monitor->session.name, v->name, r->pid, strerror(-why));
	if (twin)
		return why;
	/* Nothing is left of what it would serve with; its parent hears what became of its twin. */
	return version_kill_one(v, r->pid) ? REPLY_LATER : why;
}

/* That of one which stands has been asked when it was found. */
static uint64_t twin_began(const struct move *mv, pid_t twin)
{
	for (unsigned i = 0; i < mv->processes; i++)
		if (mv->process[i] == twin)
			return mv->process_began[i];
	return process_began(twin);
}

/*
 * Nobody is waited for, and nothing could be undone: it leads when it has all, and asks no more.
 * What it asked has its answer with the last message, so it is looked at no more either.
 */
static bool leads_at_once(struct version *v, const struct request *r, struct move *mv)
{
	bool at_once = (move_is_last(mv) || mv->state == MOVE_IS_takes) && takers_room(mv);

	if (at_once)
		__atomic_store_n(&v->area->slot[r->slot].asked, RS_IDLE, __ATOMIC_RELAXED);
	return at_once;
}

static void all_send(struct monitor *m, struct taker *k, uint64_t begin)
{
	k->n = take(m, k);
	say_log("take", "%ld descriptors sent after %lu us, %u by their fdinfo%s", k->n,
		now_us() - begin, fetch_asked(), k->unasked ? ", unasked" : "");
	sent_note(&m->move, k->n, begin);
}

/* All is sent, or cannot be, and the process waits among the takers. */
static int64_t taken(struct monitor *m, struct taker *k)
{
	struct move *mv = &m->move;
	int64_t reply;

	if (k->n < 0) {
		takers_close(k);
		k->told = k->ready = false;
		snprintf(mv->lacks, sizeof(mv->lacks), "what process %d of the leader has: %s",
			 k->twin, strerror((int)-k->n));
	}
	reply = takers_add(mv, k);
	if (k->told)
		takers_lead(m, mv);
	return reply;
}

/* REQ_TAKE: all that its twin has is sent; it is answered when all processes have theirs. */
int64_t take_serve(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	struct move *mv = &m->move;
	uint32_t lane = lane_is(m, r->args[5]) ? (uint32_t)r->args[5] : LANES_ALL;
	struct taker k = { .version = v, .socket = -1, .guest = r->args[1] != 0, .request = *r };
	uint64_t begin = now_us();

	takers_ask(mv, v, r->pid);
	/* Its version has failed, and is replaced: it stands here until it ends. */
	if (is_replaced(m, v) && takeover_switched(m))
		return takers_add(mv, &k);
	if (v->index != m->leader || lane == LANES_ALL ||
	    (!takeover_switched(m) && leads_already(m, v, r->pid)))
		return -EINVAL;
	/* All that stood have been taken from: its twin had ended before, and has told no end. */
	if (!takeover_switched(m))
		return take_refuse(v, r, -ESRCH, false);
	k.holder = holder(m, v, r->pid, lane, &k.twin);
	say_log("take", "%d asks %lu us after the beginning; its twin found in %lu us", r->pid,
		begin - mv->began_us, now_us() - begin);
	k.twin_began = k.holder ? twin_began(mv, k.twin) : 0;
	/* A process of the old leader's may ask as one of its successor's that helps it. */
	k.n = !k.holder || k.twin == r->pid ? -ESRCH : !rights_cover(r->pid, k.twin) ? -EPERM :
	      !twin_note(mv, k.twin) ? -EALREADY : 0;
	if (k.n < 0) {
		say_log("take", "%ld descriptors sent after %lu us", k.n, now_us() - begin);
		return take_refuse(v, r, (int)k.n, k.holder != NULL);
	}
	k.told = k.ready = leads_at_once(v, r, mv);
	all_send(m, &k, begin);
	return taken(m, &k);
}

void take_unasked(struct monitor *m, struct move *mv)
{
	struct taker k = { .version = mv->to, .holder = mv->from, .twin = mv->process[0],
			   .told = true, .ready = true, .unasked = true };
	uint64_t begin = now_us();

	MUST(mv->state == MOVE_IS_receives);
	if (!wire_sends(mv->to))
		return;
	if (!fetch_is_all() || !takers_room(mv) || !twin_note(mv, k.twin)) {
		wire_refuse(mv->to);
		return;
	}
	k.twin_began = twin_began(mv, k.twin);
	k.socket = wire_take(mv->to, &k.request);
	all_send(m, &k, begin);
	if (k.n < 0) {	/* its end may be closed, or nobody reads there: it asks then */
		takers_close(&k);
		mv->sent--;
		wire_refuse(mv->to);
		return;
	}
	taken(m, &k);
}
