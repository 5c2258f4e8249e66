/*
 * A twin is made of the leader that stands: each of its processes is asked for a copy of itself
 * (inside/roles/twin.c), all of them or none.  Who asks for a step is answered when all have
 * asked for it: so nobody goes on before each has its copy, and no copy before all are there.
 *
 * Whatever fails until then the copies end, and the leader goes on as if nothing had been asked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/foam/foam_task.h"
#include "engine/outside/follow/given.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/copies.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/rewind/shares.h"
#include "engine/outside/rewind/twin_copy.h"
#include "engine/outside/rules/rules_at_work.h"
#include "engine/outside/session/reach.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

#define STAND_US	10000	/* of its time, for the leader's threads to come to stand */
#define BEGIN_US	20000	/* of its time, and where copies can be made of them */
#define COPY_US		2000000	/* for the copies: more than a fork of 100 GB takes */
#define LOOK_US		2000	/* at who has ended, or stands for a request of another kind */

/* The one that is being made; while the leader stands the monitor does nothing else. */
static struct {
	struct version *v;	/* its row; NULL: none is */
	const struct follower_options *like;	/* what is asked of it; a name, or NULL */
	uint32_t number;	/* of the copies that are asked for */
	uint64_t began;		/* of the leader's first process */
	bool begun, made;
	uint64_t went_us;	/* when the leader went on; 0: it stands */
	uint64_t looked_us;	/* when who is missing was looked at last, */
	pid_t rests;		/* and that this one sleeps, since: */
	uint64_t rests_us;
	pid_t child;		/* of one of them, that has ended and is not waited for; 0: none */
	int error;
	struct straggler late;	/* of -EAGAIN: who did not stand, if it has a thread; else */
	char why[WHY_MAX];	/* what it was; "": nothing more is known than `error` says */
} making;

/* --- why there is none ----------------------------------------------------------------- */

/* The thread of the process that is not where a copy can be made of it. */
static void late_note(const struct version *leader, const struct copy *c)
{
	for (uint32_t i = 0; i < version_slots(leader); i++) {
		const struct slot *s = &leader->area->slot[i];

		if (s->owner && s->pid == c->of && s->parked != PARKED_WRITTEN) {
			straggler_note(&making.late, leader, i);
			return;
		}
	}
	why_first(making.why, "process %d does not ask for a copy in time", c->of);
}

/* The first for which the others wait: who waits is answered when all do. */
static const struct copy *missing(const struct version *leader)
{
	const struct rewind *rw = &leader->rewind;
	unsigned i = 0;

	while (i < rw->wanted_copies && rw->wanted[i].waits)
		i++;
	MUST(i < rw->wanted_copies);
	return &rw->wanted[i];
}

/* Their time is over. */
static void copies_late(const struct version *leader)
{
	making.error = -EAGAIN;
	if (takeover_any(leader->monitor))
		why_first(making.why, "a takeover is under way");
	else if (making.begun)
		why_first(making.why, "process %d does not come to have a copy in time",
			  missing(leader)->of);
	else
		late_note(leader, missing(leader));
}

/*
 * A thread that makes a copy computes, or waits in the kernel as nobody can disturb it.  Who
 * sleeps otherwise, or has been stopped, has no copy for as long as that lasts.
 */
static bool missing_rests(const struct version *leader)
{
	const struct copy *c = missing(leader);
	char state = thread_state(c->of, c->request.tid);
	uint64_t now = now_us();

	if (!state || strchr("ZX", state)) {
		why_first(making.why, "process %d has ended", c->of);
		return true;
	}
	if (!strchr("STt", state) || making.rests != c->of)
		making.rests_us = now;
	making.rests = c->of;
	making.looked_us = now;
	return now - making.rests_us > BEGIN_US;
}

/* What the asker's process says; it is not copied now. */
static int refusal_take(const struct request *r)
{
	int64_t why = -(int64_t)(int32_t)r->args[2];
	int who = (int)(r->args[1] >> 32);

	if (why == EAGAIN)
		why_first(making.why, "the kernel makes no copy of process %d (ulimit -u, "
			  "pids.max)", r->pid);
	if (why < TWIN_WAS_QUIET || why >= TWIN_REFUSALS)
		return 0;
	if (why == TWIN_IN_LOCK)
		why_first(making.why, "thread %d of process %d is in a lock since nobody followed",
			  who, r->pid);
	else
		why_first(making.why, "process %d had told nothing, and does from now on", r->pid);
	return -EAGAIN;
}

/* --- where it begins ------------------------------------------------------------------ */

/* Lanes whose threads stand; of others nobody will read what comes. */
static void lanes_standing(const struct version *v, bool *stands)
{
	memset(stands, 0, LANES_ALL * sizeof(*stands));
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];
		uint32_t lane = s->lane - 1;

		if (s->owner && s->parked && lane < LANES_ALL)
			stands[lane] = true;
	}
}

static struct cursor cursor_of(const struct lane *l, uint32_t source, bool open)
{
	return (struct cursor){
		.at = l->head, .life = l->life, .source = source,
		.place = l->head ? cursor_place(l->head, l->now) : CHUNK_NONE,
		.done = open ? 0 : l->life,
	};
}

/* Before they stand: of a lane that is never opened this is all, and the pages are there. */
static void cursors_prepare(struct monitor *m, uint32_t version)
{
	const struct lane none = { 0 };

	MUST(version != m->leader);
	for (uint32_t r = 0; r < m->realms; r++) {
		struct section *s = realm_part(m, r, version);

		s->image = 0;
		memset(s->asleep, 0, sizeof(s->asleep));
		for (uint32_t i = 0; i < LANES; i++)
			s->cursor[i] = cursor_of(&none, m->leader, false);
	}
}

/* All stand: it has read what there is. */
static void cursors_begin(struct monitor *m, uint32_t version)
{
	static bool stands[LANES_ALL];

	MUST(version != m->leader);
	lanes_standing(leading(m), stands);
	for (uint32_t r = 0; r < m->realms; r++) {
		struct section *leader = realm_part(m, r, m->leader);
		struct section *s = realm_part(m, r, version);

		__atomic_fetch_and(&leader->strayed, ~(1u << version), __ATOMIC_RELAXED);
		BOTH_BY(section_dropped, fetch_and, &leader->dropped, ~(1u << version));
		for (uint32_t i = 0; i < section_lanes(leader); i++)
			s->cursor[i] = cursor_of(&leader->lane[i], m->leader,
						 leader->lane[i].state == LANE_OPEN &&
						 stands[r * LANES + i]);
	}
}

/* What is said of the row on the monitor's page is said of whom it was. */
static void conduct_begin(struct monitor *m, uint32_t version)
{
	struct conduct *c = m->conduct;

	conduct_bit(&c->following, version, false);
	conduct_bit(&c->crashed, version, false);
	conduct_bit(&c->ended, version, false);
	conduct_bit(&c->park, version, false);
	c->next[version] = version;
}

/* --- the copies are made ----------------------------------------------------------------- */

/* It is the leader's program at the leader's place. */
static void row_fill(struct version *v)
{
	const struct version *leader = leading(v->monitor);
	const struct rewind *copies = &leader->rewind;

	MUST(v->state == VERSION_ENDED && v != leader && copies->wanted_copies);
	row_take(v, leader->path, row_words(leader->argv), making.like,
		 making.like->update ? "new" : "twin");
	if (making.like->update) {
		v->age = leader->age + 1;
		rules_releases(v->monitor);
	} else {
		memcpy(v->prepared, leader->prepared, sizeof(v->prepared));
		v->prepared_by = leader->prepared_by;
		v->build_word = leader->build_word;
	}
	v->server = copies->wanted[0].pid;
	v->began = copies->wanted[0].began;
	v->asleep = making.like->asleep;
	twin_comes(v);
	/* Its memory knows the leader's numbers. */
	if (v->rewind.last < copies->last)
		v->rewind.last = copies->last;
	v->images = leader->images;
	memcpy(v->image, leader->image, AREA_IMAGES * sizeof(*v->image));
	memcpy(v->execs, leader->execs, sizeof(v->execs));
	memcpy(v->area->unsealed, leader->area->unsealed, sizeof(v->area->unsealed));
	v->area->filters = leader->area->filters;
}

/* Each is told who all the others are now. */
static void row_copies(struct version *v, struct rewind *leaders)
{
	struct rewind *rw = &v->rewind;

	memcpy(rw->copy, leaders->wanted, sizeof(rw->copy));
	rw->copies = leaders->wanted_copies;
	leaders->wanted_copies = 0;
	rw->oldest = v->began;
	for (unsigned i = 0; i < rw->copies; i++)
		rw->oldest = rw->copy[i].began < rw->oldest ? rw->copy[i].began : rw->oldest;
	copies_move(v);
	copies_move_ended(v);
	rw->copies = 0;		/* they are no image */
}

/* The row of one of the leader's processes that are asked for a copy, for this one; or NULL. */
static struct copy *asked(struct version *leader, const struct request *r)
{
	if (!making.v || making.made || (uint32_t)r->args[1] != making.number ||
	    leader->index != leader->monitor->leader)
		return NULL;
	return copy_of(&leader->rewind, r->pid);
}

/* Whether it led a session that none of the others need: one in a group of its own. */
static bool has_session(const struct rewind *rw, const struct copy *c)
{
	bool alone = true;

	for (unsigned i = 0; i < rw->wanted_copies; i++)
		alone &= &rw->wanted[i] == c || rw->wanted[i].group != c->group;
	return alone && (rw->wanted_copies == 1 || getsid(c->of) == c->of);
}

static int start_send(const struct version *leader, const struct copy *c, int socket)
{
	const struct realm *its = &leader->monitor->realm[c->request.args[1] >> 32];
	const struct version *v = making.v;
	struct twin_start start = {
		.version = v->index, .key = v->key, .shares = shares_of(c->of),
		.processes = leader->rewind.wanted_copies, .first = c->of == leader->server,
		.session = has_session(&leader->rewind, c),
		.asleep = making.like->asleep,
	};
	const int fd[TWIN_PARTS] = {
		[TWIN_AREA] = v->area_fd, [TWIN_BRIEF] = v->brief_fd,
		[TWIN_SECTION] = its->section_fd[v->index],
		[TWIN_LEADERS] = its->section_read_fd[leader->index],
	};
	int result = descriptors_send(socket, fd, TWIN_PARTS, &start, sizeof(start));

	return result ? result : shares_send(c->of, socket);
}

static int process_begin(const struct version *leader, const struct copy *c)
{
	int socket = asker_socket(c->of, (int)c->request.args[2]), result;

	if (socket < 0)
		return socket;
	result = start_send(leader, c, socket);
	close(socket);
	return result;
}

/* All stand where they can be copied. */
static int all_begin(struct version *leader)
{
	const struct rewind *rw = &leader->rewind;
	int result = making.child ? copies_ended(leader) : 0;

	if (result == -EAGAIN)
		why_first(making.why, "more than %u children have ended that it has not waited for",
			  ENDED_MAX);
	else if (result)
		why_first(making.why, "it has not waited for its child %d, and the kernel does not "
			  "tell all of those (CONFIG_PROC_CHILDREN)", making.child);
	else if (!copies_all(leader))
		why_first(making.why, "a process of it has just begun, or ended");
	result = making.why[0] ? -EAGAIN : shares_make();

	for (unsigned i = 0; i < rw->wanted_copies && !result; i++)
		result = process_begin(leader, &rw->wanted[i]);
	return result;
}

static int64_t begin_serve(struct version *leader, const struct request *r)
{
	uint32_t realm = (uint32_t)(r->args[1] >> 32);
	struct copy *c = asked(leader, r);

	if (!c || making.begun || realm >= leader->monitor->realms)
		return -EINVAL;
	/* Who waits asks again now and then. */
	if (c->waits)
		return REPLY_LATER;
	if (!realm_is_one(leader->monitor) && !realm_fits(leader->monitor, realm, r->tid))
		return -EPERM;
	if (!making.error)
		making.error = shares_look(r->pid);
	making.child = r->args[2] >> 32 ? (pid_t)(r->args[2] >> 32) : making.child;
	if (!copies_wait(&leader->rewind, c, r))
		return REPLY_LATER;
	making.begun = true;
	making.looked_us = now_us();
	making.rests = 0;
	if (!making.error)
		making.error = all_begin(leader);
	copies_answer(leader, making.error);
	return REPLY_LATER;
}

/* The kernel says whose it is: the leader's still, or the twin's already. */
static int copy_check(const struct version *leader, struct copy *c)
{
	const struct rewind *rw = &leader->rewind;
	pid_t pid = c->claim;

	for (unsigned i = 0; i < rw->wanted_copies; i++)
		if (rw->wanted[i].of == pid || rw->wanted[i].pid == pid)
			return -EPERM;
	if (process_over(pid)) {
		why_first(making.why, "the copy of process %d has ended", c->of);
		return -EAGAIN;
	}
	if (process_began(pid) < making.began ||
	    (!version_owns(leader, pid, pid) && !version_owns(making.v, pid, pid)))
		return -EPERM;
	c->pid = pid;
	c->began = process_began(pid);
	return 0;
}

static int copies_check(struct version *leader)
{
	struct rewind *rw = &leader->rewind;
	int result = 0;

	for (unsigned i = 0; i < rw->wanted_copies && !result; i++)
		result = copy_check(leader, &rw->wanted[i]);
	copies_made_settle(rw);
	return result;
}

static void leader_unparks(struct version *leader)
{
	unpark(leader->monitor, leader->index);
	making.went_us = now_us();
}

/*
 * Who made copies goes first: where processors are few the copies, and all who sleep for a change
 * of the streams, would have them before the answer is written, and ours behind that.
 */
static void leader_goes(struct version *leader, int result)
{
	copies_settle(&leader->rewind);
	conduct_bit(&leader->monitor->conduct->park, leader->index, false);
	copies_answer(leader, result);
	reach_settle();
	rewind_word_set(&leader->brief->images.stand, 0);
	leader_unparks(leader);
	usleep(SOON_US);
}

/* One that is to be a file reads nothing: its recorder does. */
static void copies_read(struct monitor *m, bool reads)
{
	if (making.like->asleep)
		foam_task_reads(making.v, reads);
	else
		streams_mark(m, making.v->index, reads);
}

/* What is still to be done for a twin is its own time. */
static void all_made(struct version *leader)
{
	making.made = true;
	copies_read(leader->monitor, true);
	if (making.like->update)
		stages_leader_goes(leader->monitor);
	leader_goes(leader, 0);
	making.error = copies_check(leader);
	if (making.error) {
		copies_read(leader->monitor, false);
		streams_changed(leader->monitor);
		return;
	}
	row_fill(making.v);
	row_copies(making.v, &leader->rewind);
}

/* Which process is its copy each says itself: of whom they are is looked at behind the stand. */
static int64_t made_serve(struct version *leader, const struct request *r)
{
	struct copy *c = asked(leader, r);
	pid_t pid = (pid_t)r->args[2];

	if (!c || (!making.begun && pid > 0))
		return -EINVAL;
	if (c->waits)
		return REPLY_LATER;
	if (!making.error)
		making.error = refusal_take(r);
	if (!making.error && pid <= 0)
		making.error = pid ? pid : -EINVAL;
	if (making.error)
		return making.error;
	c->claim = pid;
	if (copies_wait(&leader->rewind, c, r))
		all_made(leader);
	return REPLY_LATER;
}

/* It is there, and stands; with all the others it follows. */
static int64_t is_serve(struct version *v, const struct request *r)
{
	struct copy *c = copy_of(&v->rewind, r->pid);

	if (making.v == v && !making.made)
		return -EAGAIN;
	if (v->state != VERSION_STARTING || !v->comes_ms || !c)
		return -EINVAL;
	if (!copies_wait(&v->rewind, c, r))
		return REPLY_LATER;
	twin_has_come(v);
	copies_answer(v, 0);
	v->rewind.wanted_copies = 0;
	return REPLY_LATER;
}

/* It sleeps, and asks again and again: it is written once. */
static int64_t asleep_serve(struct version *v, const struct request *r)
{
	if (making.v == v && !making.made)
		return -EAGAIN;
	if (v->state != VERSION_STARTING || !v->asleep || !copy_of(&v->rewind, r->pid))
		return -EINVAL;
	return foam_task_begin(v, r) ? REPLY_LATER : -EINVAL;
}

int64_t twin_serve(struct version *v, const struct request *r)
{
	switch (r->args[0]) {
	case TWIN_BEGIN:
		return begin_serve(v, r);
	case TWIN_MADE:
		return made_serve(v, r);
	case TWIN_IS:
		return is_serve(v, r);
	case TWIN_ASLEEP:
		return asleep_serve(v, r);
	default:
		return -EINVAL;
	}
}

/* --- while the leader stands ------------------------------------------------------------- */

/* Its threads are where copies can be made of them, or have had their time for that. */
static bool copy_late(struct given *begins, uint64_t begun_us)
{
	if (!making.begun)
		return given_over(begins);
	return now_us() - begun_us > COPY_US ||
	       (now_us() - making.looked_us > LOOK_US && missing_rests(leading(making.v->monitor)));
}

/* For who asks next; by the bell, for the leader stands. */
static void copy_serve(struct monitor *m, struct given *begins)
{
	uint32_t heard[VERSIONS];
	unsigned n = versions_heard(m, heard);

	m->asked_soon = false;
	given_serve(begins, m);
	if (!making.made && !making.error &&
	    !versions_ring(m, heard, n, m->asked_soon ? SOON_US : LOOK_US))
		usleep(SOON_US);
}

static int copy_wait(struct monitor *m)
{
	uint64_t begun_us = now_us();
	struct given begins;
	bool late = false;

	given_begin(&begins, leading(m), BEGIN_US);
	/* Who has asked by the end of that time is served. */
	while (!making.made && !making.error && !late && !takeover_any(m)) {
		late = copy_late(&begins, begun_us);
		begun_us = making.begun ? begun_us : now_us();
		copy_serve(m, &begins);
	}
	if (!making.made && !making.error)
		copies_late(leading(m));
	return making.error;
}

static int copy_ask(struct monitor *m, struct version *v)
{
	struct version *leader = leading(m);
	int result = copies_begin(leader);

	if (result == -EAGAIN)
		why_first(making.why, "a process of it has just begun");
	if (result)
		return result;
	making.v = v;
	making.number = ++leader->rewind.last;
	making.began = leader->began;
	making.made = making.begun = false;
	making.child = 0;
	making.error = 0;
	copies_lift(&leader->rewind);
	cursors_begin(m, v->index);
	if (making.like->asleep == ASLEEP_FIRST)
		cursors_begin(m, ROW_LOG);
	rewind_word_set(&leader->brief->images.stand, making.number);
	streams_changed(m);
	result = copy_wait(m);
	if (!making.went_us)
		leader_goes(leader, result);
	copies_drop(&leader->rewind);
	shares_end();
	making.v = NULL;
	return result;
}

void twin_prepare(struct version *v, const struct follower_options *like)
{
	struct monitor *m = v->monitor;

	MUST(v->state == VERSION_ENDED);
	streams_sweep(m);
	conduct_begin(m, v->index);
	cursors_prepare(m, v->index);
	if (like->asleep == ASLEEP_FIRST) {
		conduct_begin(m, ROW_LOG);
		cursors_prepare(m, ROW_LOG);
	}
}

int twin_copy(struct version *v, const struct follower_options *like, uint64_t *stood_us)
{
	struct monitor *m = v->monitor;
	struct version *leader = leading(m);
	uint64_t begin = now_us();
	int result;

	MUST(v->state == VERSION_ENDED && !takeover_any(m));
	making.like = like;
	making.went_us = 0;
	making.why[0] = 0;
	making.late = (struct straggler){ 0 };
	result = leader_stands(m, leader, STAND_US, &making.late) ? copy_ask(m, v) : -EAGAIN;
	if (takeover_any(m))
		why_first(making.why, "a takeover is under way");
	if (!making.went_us)
		leader_unparks(leader);
	*stood_us += making.went_us - begin;
	if (result == -EAGAIN && !making.why[0])
		straggler_say(&making.late, leader, making.why, sizeof(making.why));
	return result;
}

const char *twin_copy_why(void)
{
	return making.why;
}
