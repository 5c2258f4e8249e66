/*
 * Taking over: one version becomes the leader in the place of another.
 *
 * The old leader's threads stop where no call is half told (its `park` bit, and
 * a SIGSYS to each).  Then the streams are switched: its stream has ended, the
 * successor's is empty and goes on from there, and nobody waits for anybody.
 * What is still unread of the old stream the successor reads as a follower;
 * where a process of it comes to the end it asks for its twin's descriptors
 * (take.c) and makes its calls for real.  Only then the twin is killed, or let
 * die of what it crashed of; with --keep the old leader goes on as a follower.
 *
 * A successor may fail in its turn, even before it has taken anything: then the
 * next one takes from whoever still holds the descriptors, see take.c.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/abi/rules.h"
#include "engine/core/ring.h"
#include "engine/outside/monitor.h"
#include "engine/outside/report.h"
#include "engine/outside/say.h"

#define PARK_US		1000000	/* how long threads may take to stop */
#define READ_US		1000000	/* how long a planned one lets clients wait for the rest to be read */
#define READ_STILL_US	4000	/* without progress, where all its threads wait */
#define STOP_TRIES	8	/* then the streams are switched where they stand */
#define LET_GO_US	2000
#define PARK_AGAIN_US	5000	/* a signal may come while none can be taken */
#define SPIN_US		150	/* then sleeps that grow */
#define SLEEP_LAST_US	500
#define HASTEN_US	1000
#define BIRTH_US	100000	/* a forked process that was killed is never counted */
#define LOOK_MS		50
#define CRASH_US	1000000	/* what is older was another crash */
#define LED_MS		100	/* from its descriptors to the first call of its own */
#define DIFFERS_LAG	(1ull << 62)

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void bit_set(uint32_t *word, uint32_t version, bool on)
{
	if (on)
		__atomic_fetch_or(word, 1u << version, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(word, ~(1u << version), __ATOMIC_SEQ_CST);
}

/* --- who --------------------------------------------------------------------------- */

/* Of a stateless server some connections may have been kept from it. */
static bool knows_all(const struct monitor *m, const struct version *v)
{
	const struct version *leader = &m->version[m->leader];
	bool all = !v->partly;

	for (uint32_t i = 0; all && m->options->sampling.stateless && i < version_slots(leader); i++)
		all = !leader->area->slot[i].conns_kept;
	return all;
}

/* What it wants to do next on each connection need not be what the leader would have done. */
static bool is_apart(const struct version *v)
{
	return v->area->rules && v->area->bank[v->area->rules % 2].flags & RULES_HAS_APART;
}

/* Why it leads in no case; NULL: nothing is against it. */
static const char *barred(const struct monitor *m, const struct version *v)
{
	if (!knows_all(m, v))
		return "it does not know all connections";
	if (is_apart(v))
		return "its rules have connections apart (@apart), so it cannot lead";
	return NULL;
}

static bool may_lead(const struct monitor *m, const struct version *v)
{
	return !barred(m, v) && v->index != m->leader &&
	       v->state == VERSION_FOLLOWS && !v->gone && !v->crash[0] &&
	       m->conduct->following >> v->index & 1 && !held_crash(m, v);
}

/*
 * The one that is least behind; NULL when there is none.  One that differs may do so
 * from a leader's last words: it is the last to be asked.
 */
static struct version *successor(struct monitor *m)
{
	struct version *best = NULL;
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];
		uint64_t lag;

		if (!may_lead(m, v))
			continue;
		streams_lag(m, i, &lag);
		if (held_any(m, v, REQ_VERDICT))
			lag += DIFFERS_LAG;
		if (lag >= least)
			continue;
		least = lag;
		best = v;
	}
	return best;
}

/* --- standing still ------------------------------------------------------------------ */

/* Dead, or a process that nobody has collected. */
static bool thread_over(pid_t pid, pid_t tid)
{
	if (syscall(SYS_tgkill, pid, tid, 0) < 0)
		return errno == ESRCH;
	return pid == tid && !process_began(pid);
}

static bool process_known(const struct move *mv, pid_t pid)
{
	for (unsigned i = 0; i < mv->processes; i++)
		if (mv->process[i] == pid)
			return true;
	return false;
}

static bool process_stands(const struct version *v, pid_t pid)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid == pid && !thread_over(pid, (pid_t)s->owner))
			return true;
	}
	return false;
}

/* Looked at once: what a slot says may be anything. */
static bool process_note(struct move *mv, pid_t pid)
{
	if (process_known(mv, pid))
		return true;
	if (mv->processes == MOVE_PROCESSES ||
	    ((pid != mv->from->server || mv->from->gone) && !version_owns(mv->from, pid, pid)))
		return false;
	mv->process[mv->processes++] = pid;
	return true;
}

/* Of those that were found some have ended since: nobody will take from them. */
static void processes_left(struct move *mv)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < mv->processes; i++)
		if (process_stands(mv->from, mv->process[i]))
			mv->process[kept++] = mv->process[i];
	mv->processes = kept;
}

/* Whether the process is one that was found to be the old leader's, and stands. */
bool takeover_stands(const struct monitor *m, const struct version *v, pid_t pid)
{
	return v == m->move.from && process_known(&m->move, pid);
}

/* Whether the thread stands; else it is asked to, if `ask`. */
static bool slot_stands(struct monitor *m, struct move *mv, uint32_t i, bool ask)
{
	const struct slot *s = &mv->from->area->slot[i];
	pid_t pid = s->pid, tid = (pid_t)s->owner;
	bool known;

	if (!tid || s->unheld)
		return true;
	known = ask && process_note(mv, pid);
	/* Acquire: pairs with park(); what it has told is published. */
	if (__atomic_load_n(&s->parked, __ATOMIC_ACQUIRE) || held_is(m, mv->from, i))
		return true;
	if (known && s->request.state != RS_ASKED)
		syscall(SYS_tgkill, pid, tid, SIGSYS);
	return ask && thread_over(pid, tid);
}

static bool slots_stand(struct monitor *m, struct move *mv, bool ask)
{
	uint32_t high = version_slots(mv->from);
	bool all = true;

	for (uint32_t i = 0; i < high; i++)
		all &= slot_stands(m, mv, i, ask);
	return all;
}

/* Threads and processes that are made, and have no slot yet. */
static bool all_born(const struct version *v, uint64_t for_us)
{
	/* Acquire: pairs with child_begin; who is counted no more has a slot. */
	return for_us > BIRTH_US || (!__atomic_load_n(&v->area->newborn, __ATOMIC_ACQUIRE) &&
				     !version_births(v));
}

/* When all that can make one stand, and none is being born, none can come any more. */
static bool all_stand(struct monitor *m, struct move *mv, bool ask, uint64_t for_us)
{
	return slots_stand(m, mv, ask) && all_born(mv->from, for_us) &&
	       slots_stand(m, mv, ask);
}

/* Short at first: most threads stop within microseconds. */
static void pause_for(uint64_t waited_us)
{
	uint64_t us = waited_us / 8 + 20;

	if (waited_us < SPIN_US)
		return;
	usleep((useconds_t)(us < SLEEP_LAST_US ? us : SLEEP_LAST_US));
}

static void park_say(struct monitor *m, struct move *mv)
{
	for (uint32_t i = 0; i < version_slots(mv->from); i++) {
		const struct slot *s = &mv->from->area->slot[i];

		if (!slot_stands(m, mv, i, false))
			say_log("take", "thread %d of process %d does not stand: %c, request %u",
				(int)s->owner, s->pid, thread_state(s->pid, (pid_t)s->owner),
				s->request.state);
	}
	say_log("take", "being born: %u threads, %d processes", mv->from->area->newborn,
		(int)version_births(mv->from));
}

/* What versions ask, and programs on their way through execve, which stand until they are held. */
static void serve_all(struct monitor *m)
{
	serve_requests(m);
	serve_stops(m);
}

/* Stops every thread of the old leader; false when one did not in time. */
static bool park(struct monitor *m, struct move *mv)
{
	uint64_t begin = now_us(), asked = 0, now;

	bit_set(&m->conduct->park, mv->from->index, true);
	streams_changed(m);
	for (bool ask = true;; ask = now - asked > PARK_AGAIN_US) {
		now = now_us();
		if (ask)
			asked = now;
		if (all_stand(m, mv, ask, now - begin))
			return true;
		if (now - begin > PARK_US) {
			park_say(m, mv);
			return false;
		}
		/* A thread may stand in a question that has nothing to do with this. */
		serve_all(m);
		pause_for(now - begin);
	}
}

static void unpark(struct monitor *m, uint32_t version)
{
	bit_set(&m->conduct->park, version, false);
	streams_changed(m);
}

/* --- the streams ------------------------------------------------------------------------ */

/* Whether a follower still reads what this version told when it led before. */
static bool reads_old(struct monitor *m, const struct version *v, uint32_t source)
{
	const struct section *s = streams_part(m, v->index), *from = streams_part(m, source);

	for (uint32_t i = 0; i < from->lanes_high && i < LANES; i++)
		if (s->cursor[i].source == source && s->cursor[i].life &&
		    s->cursor[i].done != s->cursor[i].life)
			return true;
	return false;
}

static bool old_stream_read(struct monitor *m, const struct version *to, bool drop)
{
	bool read = true;

	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (i == to->index || !(m->conduct->following >> i & 1) ||
		    !reads_old(m, v, to->index))
			continue;
		read = false;
		if (drop)
			follower_drop(v, VERDICT_LAGGING, "a whole leader behind");
	}
	return read || drop;
}

static bool done_by_all(struct monitor *m, const struct move *mv, uint32_t lane)
{
	uint32_t life = streams_part(m, mv->from->index)->lane[lane].life;

	for (unsigned i = 0; i < m->versions; i++)
		if (m->conduct->following >> i & 1 &&
		    streams_part(m, i)->cursor[lane].done != life)
			return false;
	return true;
}

/* The successor's section as the beginning of a stream: no chunk, the same lanes. */
static void section_begin(struct monitor *m, const struct move *mv)
{
	const struct section *from = streams_part(m, mv->from->index);
	struct section *to = streams_part(m, mv->to->index);
	/* Lanes behind these were never opened: they are as they should be. */
	uint32_t high = from->lanes_high > to->lanes_high ? from->lanes_high : to->lanes_high;

	memset(to->chunk_owner, 0, m->conduct->chunks * sizeof(to->chunk_owner[0]));
	section_spare(to, m->conduct->chunks);
	to->chunk_hint = to->dropped = to->strayed = 0;
	to->lanes_high = from->lanes_high;
	for (uint32_t i = 0; i < high && i < LANES; i++) {
		const struct lane *was = &from->lane[i];
		struct lane *l = &to->lane[i];
		bool used = i < from->lanes_high && was->state != LANE_FREE &&
			    !(was->state == LANE_CLOSED && done_by_all(m, mv, i));
		uint32_t life = l->life;

		*l = (struct lane){ .first = CHUNK_NONE, .now = CHUNK_NONE, .oldest = CHUNK_NONE,
				    .told = ~0u };
		l->state = used ? was->state : LANE_FREE;
		/* Lives go on: who read one of before would seem to be done with a new one. */
		l->life = used || was->life > life ? was->life : life;
	}
}

/*
 * The old leader reads its successor's stream from the beginning, each lane by who wrote it.
 * Of whoever read it when this version followed before nothing may be left: the lane would
 * seem to be a dead thread's, and be given to another while its own still stands.
 */
static void cursors_begin(struct monitor *m, const struct move *mv)
{
	const struct section *to = streams_part(m, mv->to->index);
	struct section *from = streams_part(m, mv->from->index);
	struct streams s = { m->conduct, mv->from->index };

	for (uint32_t i = 0; i < to->lanes_high && i < LANES; i++) {
		if (to->lane[i].state != LANE_OPEN)
			continue;
		from->cursor[i].owner = from->lane[i].owner;
		from->cursor[i].pid = from->lane[i].pid;
		cursor_begin(&s, i, to->lane[i].life, mv->to->index);
	}
}

static void streams_switch(struct monitor *m, const struct move *mv)
{
	struct conduct *c = m->conduct;
	uint32_t from = mv->from->index, to = mv->to->index;

	section_begin(m, mv);
	if (mv->keep)
		cursors_begin(m, mv);
	bit_set(&c->following, to, false);
	bit_set(&c->following, from, mv->keep);
	c->next[from] = to;
	c->next[to] = to;
	c->leader = to;
	bit_set(&c->crashed, from, mv->forced);
	bit_set(&c->crashed, to, false);
	bit_set(&c->ended, to, false);
	bit_set(&c->park, to, false);
	/* Release: who sees that the stream has ended sees what comes next. */
	bit_set(&c->ended, from, true);
	streams_changed(m);
}

/* --- the versions ------------------------------------------------------------------------ */

static void versions_switch(struct monitor *m, const struct move *mv)
{
	struct version *from = mv->from, *to = mv->to;

	from->parked = true;
	from->state = VERSION_LEAVES;
	from->area->role = ROLE_FOLLOWER;
	to->area->role = ROLE_LEADER;
	to->state = VERSION_LEADS;
	m->leader = to->index;
	if (mv->keep)
		rules_pass(to, from);
	snprintf(from->why, sizeof(from->why), "%s", mv->cause);
	to->why[0] = 0;
	m->session.server = to->server;
	m->session.server_began = to->began;
}

/* All have their descriptors; those that live say when they led. */
static bool move_done(struct move *mv)
{
	const struct area *a = mv->to->area;
	/* Acquire: pairs with took_note; the time is the last one's. */
	uint32_t lead = __atomic_load_n(&a->leads, __ATOMIC_ACQUIRE) - mv->leads;

	if (mv->taken < mv->due)
		return false;
	if (lead >= mv->taken && a->lead_ns / 1000 > mv->began_us)
		mv->ready_us = a->lead_ns / 1000 - mv->began_us;
	return lead >= mv->taken || now_ms() >= mv->taken_ms + LED_MS;
}

/* Clients wait: what the successor asks for is looked for, not waited for. */
static void move_hasten(struct monitor *m, struct move *mv)
{
	for (uint64_t begin = now_us(); now_us() - begin < HASTEN_US && !move_done(mv);) {
		serve_all(m);
		sched_yield();
	}
}

/* A thread of it says that it differs, or it is not there any more. */
static bool follows_badly(const struct monitor *m, const struct version *v)
{
	return v->state != VERSION_FOLLOWS || v->gone || held_any(m, v, REQ_VERDICT) ||
	       !(m->conduct->following >> v->index & 1) || thread_over(v->server, v->server);
}

/* Nothing is left that it must ask for. */
static bool is_read(const struct monitor *m, const struct move *mv)
{
	uint32_t to = mv->to->index, from = mv->from->index;
	uint32_t high = streams_part(m, from)->lanes_high;

	for (uint32_t i = 0; i < high && i < LANES; i++)
		if (streams_lane_unread(m, to, from, i) && !stream_only_looks(m->conduct, to, i))
			return false;
	return true;
}

/* Each of its threads sleeps, for others or for what will not be told; or is gone. */
static bool all_wait(const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];
		char state = s->owner ? thread_state(s->pid, (pid_t)s->owner) : 'S';

		if (state == 'R' || state == 'D' || state == 'T' || state == 't')
			return false;
	}
	return true;
}

enum reading { READ_ALL, READ_STANDS, READ_FAILS };

static void read_say(struct monitor *m, const struct move *mv, const char *why)
{
	for (uint32_t i = 0; i < version_slots(mv->to); i++) {
		const struct slot *s = &mv->to->area->slot[i];

		if (s->owner)
			say_log("take", "thread %d of process %d, lane %u: %c, request %u of kind %u",
				(int)s->owner, s->pid, s->lane - 1,
				thread_state(s->pid, (pid_t)s->owner), s->request.state,
				s->request.kind);
	}
	say_log("take", "%s: %lu cells are not read", why,
		streams_unread(m, mv->to->index, mv->from->index));
}

/*
 * The old leader stands, and all that it told is there: its successor reads it, and shows
 * that it is the same, while there is a way back.  Some wait for what the leader's threads
 * would have told next.
 */
static enum reading read_on(struct monitor *m, const struct move *mv)
{
	uint64_t begin = now_us(), since = begin, now = begin, least = ~0ull;

	while (now - begin < READ_US) {
		uint64_t left = streams_unread(m, mv->to->index, mv->from->index);

		serve_all(m);
		if (follows_badly(m, mv->to)) {
			read_say(m, mv, "it differs, or has ended");
			return READ_FAILS;
		}
		now = now_us();
		if (is_read(m, mv))
			return READ_ALL;
		if (now - since > READ_STILL_US && all_wait(mv->to))
			return READ_STANDS;
		since = left < least ? now : since;
		least = left < least ? left : least;
		pause_for(now - begin);
	}
	read_say(m, mv, "its time is over");
	return READ_FAILS;
}

/* The leader's threads go on for a moment, to stop elsewhere. */
static void let_go(struct monitor *m, const struct move *mv)
{
	unpark(m, mv->from->index);
	serve_requests(m);
	usleep(LET_GO_US);
}

/* NULL: the leader stands, and may be replaced; or why not. */
static const char *stop(struct monitor *m, struct move *mv)
{
	for (int tries = 0;; tries++) {
		enum reading read = READ_ALL;

		if (!park(m, mv))
			return "the leader's threads do not come to a stop";
		if (mv->reads_on)
			read = read_on(m, mv);
		if (read == READ_FAILS)
			return "it does not come to the end of what the leader has told";
		if (read == READ_ALL || tries == STOP_TRIES)
			return NULL;
		let_go(m, mv);
	}
}

static bool move_start(struct monitor *m, struct move *mv)
{
	const char *why = stop(m, mv);

	if (why && !mv->forced) {
		snprintf(mv->cause, sizeof(mv->cause), "%s", why);
		unpark(m, mv->from->index);
		return false;
	}
	mv->stopped_us = now_us() - mv->began_us;
	processes_left(mv);
	mv->due = mv->processes > mv->due ? mv->processes : mv->due;
	untold_look(m);
	streams_switch(m, mv);
	say_log("take", "%lu us after the beginning: streams switched; %lu cells are to be read",
		now_us() - mv->began_us, streams_unread(m, mv->to->index, mv->from->index));
	versions_switch(m, mv);
	mv->active = true;
	mv->until_ms = now_ms() + TAKE_MS;
	mv->lag = streams_unread(m, mv->to->index, mv->from->index);
	held_void(m, REQ_VERDICT, ANSWER_RETRY);
	if (mv->processes)
		mv->taken_us += take_prepare(mv->process[0]);
	monitor_wake_after(m, LOOK_MS);
	return true;
}

static void move_say(const struct monitor *m, const struct move *mv)
{
	say_error(NULL, "%s: %s leads (%s %s): stopped after %lu us, %u descriptors in %lu us, "
		  "running after %lu us", m->session.name, mv->to->name, mv->from->name, mv->cause,
		  mv->stopped_us, mv->descriptors, mv->taken_us, mv->ready_us);
}

/* A version that stood still follows now, or ends. */
static void version_leave(struct monitor *m, struct version *v, bool keep)
{
	if (v->state != VERSION_LEAVES)
		return;
	if (keep) {
		v->state = VERSION_FOLLOWS;
		v->parked = false;
		unpark(m, v->index);
		return;
	}
	held_leave(m, v, 0);
	v->state = VERSION_ENDED;
	if (!v->dying_ms)
		version_kill(v);
}

/* All is taken, or will never be. */
static void move_end(struct monitor *m)
{
	struct move *mv = &m->move;

	take_over();
	move_say(m, mv);
	session_save(&m->session);
	mv->active = false;
	for (unsigned i = 0; i < m->versions; i++)
		version_leave(m, &m->version[i], mv->keep && mv->from->index == i);
}

/* --- what begins one ----------------------------------------------------------------------- */

/* When it began: the thread that crashed has said so, or now. */
static uint64_t crash_us(const struct version *v)
{
	uint64_t now = now_us(), said = v->area->crash_ns / 1000;

	v->area->crash_ns = 0;
	return said <= now && now - said < CRASH_US ? said : now;
}

/* The leader cannot go on: a follower is to take over.  False: there is none. */
bool takeover_want(struct version *from, const char *cause, bool forced)
{
	struct monitor *m = from->monitor;
	struct move *mv = &m->move;

	if (mv->wanted)
		return true;
	if (!successor(m))
		return false;
	mv->next_us = crash_us(from);
	mv->wanted = true;
	mv->wanted_forced = forced;
	snprintf(mv->next_cause, sizeof(mv->next_cause), "%s", cause);
	return true;
}

void takeover_missed(const struct version *from, const char *cause)
{
	const struct monitor *m = from->monitor;

	for (unsigned i = 0; i < m->versions; i++) {
		const struct version *v = &m->version[i];

		if (m->conduct->following >> i & 1 && barred(m, v))
			say_error(NULL, "%s: %s %s; %s does not go on in its place: %s",
				  m->session.name, from->name, cause, v->name, barred(m, v));
	}
}

static void move_clear(struct monitor *m, struct version *to, const char *cause)
{
	struct move *mv = &m->move;

	/* What one that failed had yet to take is to be taken all the same. */
	mv->due = mv->active ? mv->due : 1;
	mv->untolds = mv->active ? mv->untolds : 0;
	mv->from = leading(m);
	mv->to = to;
	snprintf(mv->cause, sizeof(mv->cause), "%s", cause);
	mv->wanted = mv->keep = mv->differs = false;
	mv->descriptors = mv->taken = mv->retries = 0;
	mv->taken_us = mv->ready_us = 0;
	mv->processes = 0;
	mv->leads = to->area->leads;
}

/* Nobody can take over: what waits for it goes on to its end. */
static void takeover_none(struct monitor *m)
{
	if (m->move.wanted_forced)
		say_error(NULL, "%s: %s %s, and no follower can go on in its place",
			  m->session.name, leading(m)->name, m->move.next_cause);
	m->move.wanted = false;
	held_leave(m, leading(m), 0);
}

/*
 * One that led before must follow in all its threads before it leads again: none of
 * them may find, when it looks at last, that nothing has happened.
 */
static bool settled(const struct version *v)
{
	for (uint64_t begin = now_us(); now_us() - begin < PARK_US; usleep(SLEEP_LAST_US)) {
		bool all = true;

		for (uint32_t i = 0; i < version_slots(v) && all; i++) {
			const struct slot *s = &v->area->slot[i];

			/* Acquire: pairs with park(). */
			all = !s->owner || !__atomic_load_n(&s->parked, __ATOMIC_ACQUIRE) ||
			      thread_over(s->pid, (pid_t)s->owner);
		}
		if (all)
			return true;
	}
	return false;
}

static void takeover_begin(struct monitor *m)
{
	struct move *mv = &m->move;
	struct version *to = successor(m);

	if (!to) {
		takeover_none(m);
		return;
	}
	move_clear(m, to, mv->next_cause);
	mv->began_us = mv->next_us;
	mv->forced = mv->wanted_forced;
	mv->reads_on = false;
	say_log("take", "%s is to lead, %lu us after the beginning", to->name,
		now_us() - mv->began_us);
	old_stream_read(m, to, true);
	settled(to);
	if (move_start(m, mv))
		move_hasten(m, mv);
	else
		takeover_none(m);
}

int takeover_promote(struct monitor *m, struct version *to, enum promotion how, char *why,
		     size_t size)
{
	bool keep = how == PROMOTE_KEEP;
	struct move *mv = &m->move;

	why[0] = 0;
	if (mv->active || mv->wanted)
		snprintf(why, size, "another takeover is under way");
	else if (to->state != VERSION_FOLLOWS || to->gone)
		snprintf(why, size, "it has not begun, or has ended");
	else if (barred(m, to))
		snprintf(why, size, "%s", barred(m, to));
	else if (!old_stream_read(m, to, false))
		snprintf(why, size, "another follower still reads what it told when it led");
	else if (!settled(to))
		snprintf(why, size, "some of its threads do not follow yet");
	if (why[0])
		return -EBUSY;
	move_clear(m, to, keep ? "follows it" : "ends");
	mv->forced = false;
	mv->keep = keep;
	mv->reads_on = how != PROMOTE_DIFFERS;
	mv->began_us = now_us();
	if (move_start(m, mv))
		return 0;
	snprintf(why, size, "%s", mv->cause);
	return -ETIMEDOUT;
}

/* --- while it lasts -------------------------------------------------------------------------- */

/* Time goes on while the successor reads on. */
static bool move_late(struct monitor *m, struct move *mv)
{
	uint64_t lag = streams_unread(m, mv->to->index, mv->from->index);

	if (lag < mv->lag)
		mv->until_ms = now_ms() + TAKE_MS;
	mv->lag = lag;
	return now_ms() >= mv->until_ms;
}

/* Those that crashed and were to die by themselves. */
static void dying_look(struct monitor *m)
{
	uint64_t now = now_ms();

	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (!v->dying_ms)
			continue;
		if (v->dying_ms > now) {
			monitor_wake_after(m, (unsigned)(v->dying_ms - now));
			continue;
		}
		v->dying_ms = 0;
		version_kill(v);
	}
}

void takeover_look(struct monitor *m)
{
	struct move *mv = &m->move;

	dying_look(m);

	if (mv->wanted)
		takeover_begin(m);
	if (!mv->active)
		return;
	if (move_done(mv) || move_late(m, mv))
		move_end(m);
	else
		monitor_wake_after(m, LOOK_MS);
}
