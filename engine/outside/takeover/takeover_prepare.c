/*
 * Taking over, prepared: the old leader's threads come to stand where no call is
 * half told, and the successor reads what they have told.  Up to here all can be
 * undone: the leader goes on as if nothing had been asked.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/company.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/report/report.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

/* Of the time that they have (given.c): clients wait meanwhile. */
#define PARK_US		1000000	/* for threads to stop */
#define READ_US		1000000	/* in a planned one for the rest to be read */
#define ROLL_US		1000000	/* before, for its successor's processes to wait for it */
#define READ_STILL_US	4000	/* without progress, where all its threads wait */
#define STOP_TRIES	8	/* then the streams are switched where they stand */
#define LET_GO_US	2000
#define PARK_AGAIN_US	5000	/* a signal may come while none can be taken */
#define SPIN_US		150	/* then sleeps that grow */
#define SLEEP_LAST_US	500
#define BIRTH_US	100000	/* a forked process that was killed is never counted */

/* --- standing still ------------------------------------------------------------------ */

bool thread_over(pid_t pid, pid_t tid)
{
	if (syscall(SYS_tgkill, pid, tid, 0) < 0)
		return errno == ESRCH;
	return pid == tid && thread_ended(pid, tid);
}

static bool process_known(const struct move *mv, pid_t pid)
{
	for (unsigned i = 0; i < mv->processes; i++)
		if (mv->process[i] == pid)
			return true;
	return false;
}

/* One that has been found may have ended since, and its number be a stranger's. */
static bool process_is_still(const struct move *mv, pid_t pid)
{
	for (unsigned i = 0; i < mv->processes; i++)
		if (mv->process[i] == pid)
			return process_began(pid) == mv->process_began[i];
	return false;
}

static bool process_stands(const struct version *v, pid_t pid)
{
	if (pid == version_head(v))
		return true;
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid == pid && !thread_over(pid, (pid_t)s->owner))
			return true;
	}
	return false;
}

/* The version's, by what the kernel says: what a slot says may be anything. */
static bool process_note(struct move *mv, pid_t pid)
{
	if (process_known(mv, pid))
		return true;
	if (mv->processes == MOVE_PROCESSES ||
	    ((pid != mv->from->server || mv->from->gone) && !version_owns(mv->from, pid, pid)))
		return false;
	/* Of its first one that is known. */
	mv->process_began[mv->processes] = pid == mv->from->server && !mv->from->gone ?
					   mv->from->began : process_began(pid);
	mv->process[mv->processes++] = pid;
	return true;
}

/* Of those that were found some have ended since: nobody will take from them. */
void processes_left(struct move *mv)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < mv->processes; i++)
		if (process_stands(mv->from, mv->process[i])) {
			mv->process_began[kept] = mv->process_began[i];
			mv->process[kept++] = mv->process[i];
		}
	mv->processes = kept;
}

/* Whether the process is one that was found to be the old leader's, and stands. */
bool takeover_stands(const struct monitor *m, const struct version *v, pid_t pid)
{
	return v == m->move.from && process_known(&m->move, pid);
}

/* We stop it ourselves, for a moment: it is on its way through an execve. */
static bool tracee_is(pid_t tid)
{
	return process_tracer(tid) == getpid();
}

/*
 * Asks a thread that does not stand to come, whatever its slot says that it is doing.  True:
 * there is nobody to wait for.  It has ended, or a worker that may write into all slots has
 * written a stranger there, by whom it would keep its server from ever being replaced.
 */
static bool slot_knock(struct move *mv, pid_t pid, pid_t tid)
{
	if (thread_over(pid, tid))
		return true;
	if (!process_note(mv, pid))
		return mv->processes < MOVE_PROCESSES && !tracee_is(tid);
	if (!process_is_still(mv, pid))
		return true;
	thread_knock(pid, tid);
	return false;
}

/* Whether the thread stands; else it is asked to, if `ask`. */
static bool slot_stands(struct monitor *m, struct move *mv, uint32_t i, bool ask)
{
	const struct slot *s = &mv->from->area->slot[i];
	uint64_t holder = __atomic_load_n(&s->holder, __ATOMIC_RELAXED);
	pid_t pid = (pid_t)(holder >> 32), tid = (pid_t)(uint32_t)holder;

	if (!tid || s->unheld)
		return true;
	/* What it has told is published. */
	if (CONSUME(slot_parked, &s->parked) || held_is(m, mv->from, i) ||
	    taker_waits(mv, mv->from, i)) {
		if (ask)
			process_note(mv, pid);
		return true;
	}
	return ask && slot_knock(mv, pid, tid);
}

static bool slots_stand(struct monitor *m, struct move *mv, bool ask)
{
	uint32_t high = version_slots(mv->from);

	mv->late = 0;
	for (uint32_t i = 0; i < high; i++)
		if (!slot_stands(m, mv, i, ask) && !mv->late)
			mv->late = i + 1;
	return !mv->late;
}

/* Threads and processes that are made, and have no slot yet. */
static bool all_born(const struct version *v, uint64_t for_us)
{
	/* Who is counted no more has a slot. */
	return for_us > BIRTH_US || (!CONSUME(area_newborn, &v->area->newborn) &&
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
				s->asked);
	}
	say_log("take", "being born: %u threads, %d processes", mv->from->area->newborn,
		(int)version_births(mv->from));
}

/* What versions ask, and programs on their way through execve, which stand until they are held. */
void serve_all(struct monitor *m)
{
	serve_requests(m);
	exec_stops(m);
}

/* One that is alone is asked for company: there is nothing else for which it stands. */
static void park_ask(struct monitor *m, uint32_t version)
{
	if (m->conduct)
		conduct_bit(&m->conduct->park, version, true);
	else
		company_word_set(&m->version[version], COMPANY_STAND);
}

/* Whose they are is asked of the kernel while they run: the first to stand waits for the last. */
static void processes_find(struct move *mv)
{
	for (uint32_t i = 0; i < version_slots(mv->from); i++) {
		const struct slot *s = &mv->from->area->slot[i];

		if (s->owner && !s->unheld)
			process_note(mv, s->pid);
	}
}

/* Stops every thread of the old leader; false when one did not in this time of its own. */
static bool park(struct monitor *m, struct move *mv, uint64_t limit_us)
{
	uint64_t begin, asked = 0, now;
	struct given given;

	MUST(mv->from == leading(m));
	processes_find(mv);
	begin = now_us();
	given_begin(&given, mv->from, limit_us);
	park_ask(m, mv->from->index);
	/* Those of the two are answered at once: monitor/serve.c. */
	held_again(m, REQ_MAPPED);
	for (bool ask = true;; ask = now - asked > PARK_AGAIN_US) {
		now = now_us();
		if (ask)
			asked = now;
		if (all_stand(m, mv, ask, now - begin))
			return true;
		if (given_past(&given)) {
			park_say(m, mv);
			return false;
		}
		if (ask && m->conduct)	/* where all stand already nobody is woken */
			streams_changed(m);
		/* A thread may stand in a question that has nothing to do with this. */
		given_serve(&given, m);
		pause_for(now - begin);
	}
}

bool leader_stands(struct monitor *m, struct version *leader, uint64_t limit_us,
		   struct straggler *late)
{
	static struct move mv;

	MUST(!takeover_any(m));
	mv = (struct move){ .from = leader };
	*late = (struct straggler){ 0 };
	if (park(m, &mv, limit_us))
		return !takeover_any(m);
	if (mv.late)
		straggler_note(late, leader, mv.late - 1);
	return false;
}

void unpark(struct monitor *m, uint32_t version)
{
	conduct_bit(&m->conduct->park, version, false);
	streams_changed(m);
}

/* --- what is still to be read -------------------------------------------------------- */

/* A thread that was killed has not said that it is done; perhaps not even that it began. */
static bool reader_over(const struct version *v, const struct cursor *c)
{
	if (c->pid <= 0 || c->owner <= 0)
		return !version_births(v);
	return thread_over(c->pid, c->owner);
}

/* Whether a follower still reads what this version told when it led before. */
static bool reads_old(struct monitor *m, const struct version *v, uint32_t source)
{
	LANES_EACH(m, source, i) {
		const struct cursor *c = cursor_at(m, v->index, i);

		if (c->source == source && c->life && c->done != c->life &&
		    !reader_over(v, c))
			return true;
	}
	return false;
}

bool old_stream_read(struct monitor *m, const struct version *to, bool drop)
{
	bool read = true;

	MUST(to->index != m->leader);

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

/* They are a little behind, as followers are: the one who asks can wait for that. */
bool old_stream_over(struct monitor *m, const struct version *to)
{
	uint64_t begin = now_us();
	struct given given;

	given_begin(&given, to, PARK_US);
	while (!old_stream_read(m, to, false)) {
		if (given_over(&given))
			return false;
		serve_all(m);
		pause_for(now_us() - begin);
	}
	return true;
}

/*
 * One that led before must follow in all its threads before it leads again: none of
 * them may find, when it looks at last, that nothing has happened.
 */
bool successor_settled(const struct version *v)
{
	struct given given;

	for (given_begin(&given, v, PARK_US); !given_past(&given); usleep(SLEEP_LAST_US)) {
		bool all = true;

		for (uint32_t i = 0; i < version_slots(v) && all; i++) {
			const struct slot *s = &v->area->slot[i];

			all = !s->owner || !CONSUME(slot_parked, &s->parked) ||
			      thread_over(s->pid, (pid_t)s->owner);
		}
		if (all)
			return true;
	}
	return false;
}

/* A thread of it says that it differs, or it is not there any more. */
static bool follows_badly(const struct monitor *m, const struct version *v)
{
	return v->state != VERSION_FOLLOWS || !version_alive(v) || held_any(m, v, REQ_VERDICT) ||
	       !(m->conduct->following >> v->index & 1);
}

static bool lane_is_left(const struct monitor *m, const struct move *mv, uint32_t lane)
{
	return streams_lane_unread(m, mv->to->index, mv->from->index, lane) &&
	       !stream_only_looks(m->realm[lane / LANES].conduct, mv->to->index, lane % LANES);
}

/* The leader's thread of each lane stands at a call of which followers are told. */
static void lanes_called(const struct version *from, bool *called)
{
	memset(called, 0, LANES_ALL * sizeof(*called));
	for (uint32_t i = 0; i < version_slots(from); i++) {
		const struct slot *s = &from->area->slot[i];
		uint32_t call = s->parked_at, lane = s->lane - 1;

		if (s->owner && s->parked && lane < LANES_ALL)
			called[lane] = call && call != SYS_futex + 1;
	}
}

/*
 * A thread that sleeps in a futex of its own, with something to read, or where its twin
 * waits in a call.  It has gone another way, and nothing that is told wakes it.
 */
static pid_t sleeper(const struct monitor *m, const struct move *mv)
{
	static bool called[LANES_ALL];

	MUST(mv->from != mv->to);

	lanes_called(mv->from, called);
	for (uint32_t i = 0; i < version_slots(mv->to); i++) {
		const struct slot *s = &mv->to->area->slot[i];
		uint32_t lane = s->lane - 1;

		if (s->owner && s->asleep && lane_is(m, lane) &&
		    (called[lane] || lane_is_left(m, mv, lane)) &&
		    !thread_over(s->pid, (pid_t)s->owner))
			return (pid_t)s->owner;
	}
	return 0;
}

/* Nothing is left that it must ask for. */
static bool is_read(const struct monitor *m, const struct move *mv)
{
	LANES_EACH(m, mv->from->index, i)
		if (lane_is_left(m, mv, i))
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

/* A thread that is stopped, by a signal or a debugger, does nothing for anybody; or 0. */
static pid_t stopped_thread(const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];
		pid_t tid = (pid_t)s->owner;
		char state = tid && !s->unheld ? thread_state(s->pid, tid) : 0;

		if ((state == 'T' || (state == 't' && !tracee_is(tid))) &&
		    version_owns(v, s->pid, tid))
			return tid;
	}
	return 0;
}

/* It has read all that it was told, and no thread of it waits for more. */
static bool process_computes(const struct monitor *m, const struct move *mv, pid_t pid)
{
	bool any = false;

	for (uint32_t i = 0; i < version_slots(mv->to); i++) {
		const struct slot *s = &mv->to->area->slot[i];
		uint32_t lane = s->lane - 1;

		if (!s->owner || s->pid != pid)
			continue;
		any = true;
		if (thread_state(pid, (pid_t)s->owner) != 'R' ||
		    (lane_is(m, lane) && lane_is_left(m, mv, lane)))
			return false;
	}
	return any;
}

static pid_t computing(const struct monitor *m, const struct move *mv)
{
	pid_t last = 0;

	for (uint32_t i = 0; i < version_slots(mv->to); i++) {
		const struct slot *s = &mv->to->area->slot[i];
		pid_t pid = s->owner ? s->pid : last;

		if (pid != last && process_computes(m, mv, pid))
			return pid;
		last = pid;
	}
	return 0;
}

/*
 * Each process of the successor must come to a call to take; one that computes on would have
 * clients wait for it, while the leader stands.  So it is waited for before.
 */
static pid_t roll_call(struct monitor *m, const struct move *mv)
{
	struct given given;
	pid_t pid;

	MUST(!mv->forced);
	given_begin(&given, mv->to, ROLL_US);
	while ((pid = computing(m, mv)) && !mv->forced && !given_over(&given)) {
		serve_all(m);
		usleep(SLEEP_LAST_US);
	}
	return mv->forced ? 0 : pid;
}

/*
 * One that differs need not make the processes that the leader has made.  Such a one would be
 * waited for, while nobody serves, for what none of it is going to take; where another of its
 * threads has yet to fork it has time, in which the leader serves.
 */
static pid_t twins_call(struct monitor *m, const struct move *mv)
{
	struct given given;
	pid_t pid;

	MUST(!mv->forced && mv->differs);
	given_begin(&given, mv->to, ROLL_US);
	while ((pid = twinless(m, mv->from, mv->to)) && !mv->forced && !given_over(&given)) {
		serve_all(m);
		usleep(SLEEP_LAST_US);
	}
	return mv->forced ? 0 : pid;
}

enum reading { READ_ALL, READ_STANDS, READ_STOPPED, READ_FAILS };

static void read_say(struct monitor *m, const struct move *mv, const char *why)
{
	for (uint32_t i = 0; i < version_slots(mv->to); i++) {
		const struct slot *s = &mv->to->area->slot[i];

		if (s->owner)
			say_log("take", "thread %d of process %d, lane %u: %c, asks %u",
				(int)s->owner, s->pid, s->lane - 1,
				thread_state(s->pid, (pid_t)s->owner), s->asked);
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
	struct given given;

	MUST(mv->to != mv->from);

	for (given_begin(&given, mv->to, READ_US); !given_past(&given);) {
		uint64_t left = streams_unread(m, mv->to->index, mv->from->index);

		serve_all(m);
		if (mv->forced)		/* the leader has crashed meanwhile */
			return READ_ALL;
		if (follows_badly(m, mv->to)) {
			read_say(m, mv, "it differs, or has ended");
			return READ_FAILS;
		}
		now = now_us();
		if (is_read(m, mv) && !sleeper(m, mv))
			return READ_ALL;
		if (now - since > READ_STILL_US && stopped_thread(mv->to))
			return READ_STOPPED;
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

/*
 * At the last try.  Those that wait for each other's order go on when the stream has ended;
 * one that sleeps for itself does not.
 */
static bool stands_for_good(const struct monitor *m, struct move *mv)
{
	pid_t tid = sleeper(m, mv);

	if (tid)
		snprintf(mv->cause, sizeof(mv->cause), "it does not move: its thread %d sleeps",
			 tid);
	return tid != 0;
}

/* One that is forced has its cause, and goes on. */
static enum move_event refuse(struct move *mv, const char *why)
{
	MUST(why[0]);
	if (mv->forced)
		return MOVE_read;
	snprintf(mv->cause, sizeof(mv->cause), "%s", why);
	return MOVE_refused;
}

static enum move_event refuse_stopped(struct move *mv, const char *whose, const struct version *v)
{
	char why[sizeof(mv->cause)];

	snprintf(why, sizeof(why), "%s thread %d is stopped", whose, stopped_thread(v));
	return refuse(mv, why);
}

/* --- what the table has ----------------------------------------------------------------- */

static enum move_event stand(struct monitor *m, struct move *mv)
{
	return park(m, mv, PARK_US) ? MOVE_stands : MOVE_late;
}

/* One that is stopped comes to no call: the others would stand, and serve nobody, for it. */
enum move_event move_stop_leader(struct monitor *m, struct move *mv)
{
	MUST(mv->from == leading(m) && mv->from != mv->to);
	mv->tries = 0;
	if (!mv->forced && stopped_thread(mv->to))
		return refuse_stopped(mv, "its", mv->to);
	if (!mv->forced && stopped_thread(mv->from))
		return refuse_stopped(mv, "the leader's", mv->from);
	if (!mv->forced && !mv->differs && roll_call(m, mv))
		return refuse(mv, "a process of it computes, and comes to no call");
	if (!mv->forced && mv->differs && twins_call(m, mv))
		return refuse(mv, "a process of the leader's has no twin in it");
	return stand(m, mv);
}

enum move_event move_force(struct monitor *m, struct move *mv)
{
	/* In another thread, perhaps of the same: that is no failure of its successor's. */
	MUST(mv->from == leading(m));
	if (!mv->forced)
		snprintf(mv->cause, sizeof(mv->cause), "%s", mv->next_cause);
	mv->forced = true;
	mv->keep = false;
	return MOVE_nothing;
}

enum move_event move_do_without(struct monitor *m, struct move *mv)
{
	MUST(mv->from == leading(m));
	return refuse(mv, "the leader's threads do not come to a stop");
}

enum move_event move_read_rest(struct monitor *m, struct move *mv)
{
	enum reading read = mv->forced || mv->differs ? READ_ALL : read_on(m, mv);
	const char *barred = mv->forced ? NULL : successor_barred(m, mv->to);

	if (barred)	/* by what the leader has done since this was asked */
		return refuse(mv, barred);
	if (read == READ_STOPPED)
		return refuse_stopped(mv, "its", mv->to);
	if (read == READ_FAILS)
		return MOVE_late;
	if (read == READ_STANDS && mv->tries < STOP_TRIES)
		return MOVE_waits;
	if (read == READ_STANDS && stands_for_good(m, mv))
		return MOVE_refused;
	return MOVE_read;
}

enum move_event move_stop_elsewhere(struct monitor *m, struct move *mv)
{
	MUST(mv->tries < STOP_TRIES);
	mv->tries++;
	let_go(m, mv);
	return stand(m, mv);
}

enum move_event move_say_unread(struct monitor *m, struct move *mv)
{
	MUST(mv->from == leading(m));
	return refuse(mv, "it does not come to the end of what the leader has told");
}

enum move_event move_go_back(struct monitor *m, struct move *mv)
{
	MUST(!mv->forced);
	unpark(m, mv->from->index);
	return MOVE_nothing;
}
