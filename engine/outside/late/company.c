/*
 * From alone to leading.  A session that was begun without followers tells nothing, which is
 * why it costs nothing.  When the first follower is wanted (late/twin.c) the streams are made,
 * all threads of its server are made to stand, and its processes take them, all or none
 * (inside/roles/company.c): each asks for them, and is answered when all have asked; maps them,
 * and says whether it could; and when all could each begins to tell, which cannot fail.
 *
 * Until all have asked the streams are hidden: nobody else sees a step of this.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/attach/company_code.h"
#include "engine/outside/follow/given.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/late/company.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/serve.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/copies.h"
#include "engine/outside/spill/spill.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

/* Of the leader's time: */
#define STAND_US	20000	/* for its threads to come to stand */
#define BEGIN_US	20000	/* and its processes to ask */
#define MAP_US		500000	/* for all to have what they ask for */
#define TAKE_US		5000000	/* to tell: what is still to be done cannot fail */
#define LOOK_US		20

/* How far all processes are. */
enum making_state { MAKING_NOT, MAKING_ASKED, MAKING_MAPS, MAKING_TAKES };

/* While it is, the monitor does nothing else. */
static struct {
	enum making_state state;
	struct monitor *m;
	int error;
	struct conduct *streams;	/* until the first process is to take them */
	uint64_t rests_us;		/* the server is not made to stand again until then */
	struct given given;		/* to the state */
	char why[WHY_MAX];		/* of -EAGAIN: what it was */
} making;

void company_word_set(struct version *v, uint32_t word)
{
	/* Who sees that it is over sees what came of it. */
	PUBLISH(brief_company, &v->brief->company, word);
	syscall(SYS_futex, &v->brief->company, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- may it be -------------------------------------------------------------------------- */

static const char *processes_barred(struct version *v, bool *passes)
{
	const struct rewind *rw = &v->rewind;
	int result = copies_begin(v);
	const char *why = NULL;

	*passes = result == -EAGAIN;
	if (result)
		return *passes ? "a process of it has just begun" :
				 COPIES_TOO_MANY;
	if (copies_confined(rw)) {
		*passes = true;		/* such a one mostly ends soon */
		return COPIES_CONFINED;
	}
	for (unsigned i = 0; i < rw->wanted_copies && !why; i++)
		why = company_barred(rw->wanted[i].of, passes);
	return why;
}

static const char *barred(struct monitor *m, bool *passes)
{
	struct version *v = leading(m);

	*passes = false;
	if (m->options->role != ROLE_SOLO || m->trace)
		return "it is traced, and cannot be followed";
	if (m->options->rollback)
		return "it was started with --rollback and no follower";
	if (v->area->filters)
		return "it has a filter of its own (seccomp)";
	return processes_barred(v, passes);
}

/* --- while it stands -------------------------------------------------------------------- */

static void state_begin(enum making_state state, uint64_t limit_us)
{
	making.state = state;
	given_begin(&making.given, leading(making.m), limit_us);
}

static int start_send(struct monitor *m, const struct realm *r, int socket,
		      struct company_start *s)
{
	int fd[VERSIONS], result;

	s->chunks = m->conduct->chunks;
	s->sections = m->conduct->sections;
	s->version = m->leader;
	for (uint32_t v = 0; v < s->sections; v++)
		fd[v] = v == m->leader ? r->section_fd[v] : r->section_read_fd[v];
	result = descriptors_send(socket, &m->conduct_fd, 1, s, sizeof(*s));
	return result ? result : descriptors_send(socket, fd, s->sections, "", 1);
}

static int process_begin(struct monitor *m, const struct copy *c)
{
	int socket = asker_socket(c->of, (int)c->request.args[1]), realm, result;
	struct company_start s = { .first = c->of == leading(m)->server };

	if (socket < 0)
		return socket;
	realm = realm_for(m, c->of);
	result = realm < 0 ? realm : company_code(m, &c->request, &s);
	s.realm = (uint32_t)realm;
	if (!result)
		result = start_send(m, &m->realm[realm], socket, &s);
	close(socket);
	return result;
}

/* All have asked: the first one's rights are those of the first realm. */
static int all_begin(struct monitor *m)
{
	const struct rewind *rw = &leading(m)->rewind;
	int result = copies_all(leading(m)) ? 0 : -EAGAIN;

	if (result)
		why_first(making.why, "a process of it has just begun, or ended");
	if (!result) {
		streams_show(m, making.streams);
		making.streams = NULL;
		realm_first(m, leading(m)->server);
	}
	for (unsigned i = 0; i < rw->wanted_copies && !result; i++)
		result = process_begin(m, &rw->wanted[i]);
	return result;
}

/* Who waits is answered when all do; or at once when nothing comes of it. */
static int64_t all_wait(struct version *v, struct copy *c, const struct request *r)
{
	if (making.error)
		return making.error;
	if (!copies_wait(&v->rewind, c, r))
		return REPLY_LATER;
	if (making.state == MAKING_ASKED) {
		making.error = all_begin(making.m);
		if (!making.error)
			state_begin(MAKING_MAPS, MAP_US);
	} else {
		state_begin(MAKING_TAKES, TAKE_US);
	}
	copies_answer(v, making.error);
	return REPLY_LATER;
}

static int64_t begin_serve(struct version *v, struct copy *c, const struct request *r)
{
	if (making.state != MAKING_ASKED)
		return -EINVAL;
	if (!making.error)
		making.error = company_code(making.m, r, NULL);
	if (making.error == -EAGAIN)
		why_first(making.why, "a thread of process %d stands in code that is to be changed",
			  r->pid);
	return all_wait(v, c, r);
}

static int64_t mapped_serve(struct version *v, struct copy *c, const struct request *r)
{
	int64_t result = (int64_t)r->args[1];

	if (making.state == MAKING_TAKES)
		return -EINVAL;
	if (!making.error && (result || making.state != MAKING_MAPS))
		making.error = result > -4096 && result < 0 ? (int)result : -EAGAIN;
	if (making.error == -EAGAIN)
		why_first(making.why, "a thread of process %d is in a vfork", r->pid);
	return all_wait(v, c, r);
}

int64_t company_serve(struct version *v, const struct request *r)
{
	struct copy *c = copy_of(&v->rewind, r->pid);

	if (making.state == MAKING_NOT || v != leading(making.m) || !c)
		return -EINVAL;
	/* Who waits asks again now and then. */
	if (c->waits)
		return REPLY_LATER;
	if (r->args[0] == COMPANY_BEGIN)
		return begin_serve(v, c, r);
	if (r->args[0] == COMPANY_MAPPED)
		return mapped_serve(v, c, r);
	if (r->args[0] != COMPANY_DONE || making.state != MAKING_TAKES)
		return -EINVAL;
	c->tells = true;
	return 0;
}

/* --- until all have taken them ---------------------------------------------------------- */

/* One that has been killed asks for nothing. */
static bool any_lost(const struct rewind *rw)
{
	for (unsigned i = 0; i < rw->wanted_copies; i++)
		if (!rw->wanted[i].waits && process_over(rw->wanted[i].of))
			return true;
	return false;
}

static bool all_taken(const struct version *v)
{
	const struct copy *c = v->rewind.wanted;

	for (unsigned i = 0; i < v->rewind.wanted_copies; i++)
		if (!c[i].tells && !process_over(c[i].of))
			return false;
	return true;
}

static void late_say(const struct rewind *rw)
{
	unsigned i = 0;

	making.error = -EAGAIN;
	while (i < rw->wanted_copies && rw->wanted[i].waits)
		i++;
	if (i < rw->wanted_copies)
		why_first(making.why, "process %d %s", rw->wanted[i].of,
			  process_over(rw->wanted[i].of) ? "has just ended" :
			  "does not come to tell what it does in time");
}

static int take_wait(struct monitor *m)
{
	struct version *v = leading(m);

	for (; making.state != MAKING_TAKES && !making.error; usleep(LOOK_US)) {
		enum making_state was = making.state;
		bool late = given_over(&making.given);

		/* Who has asked by the end of that time is served. */
		given_serve(&making.given, m);
		if (making.state == was && !making.error && (late || any_lost(&v->rewind)))
			late_say(&v->rewind);
	}
	copies_settle(&v->rewind);
	copies_answer(v, making.error);
	/* Who does not say so has not begun to tell, and never will: nobody follows that. */
	for (; making.state == MAKING_TAKES && !all_taken(v); usleep(LOOK_US)) {
		given_serve(&making.given, m);
		m->failed |= given_past(&making.given);
		if (m->failed)
			return -ETIMEDOUT;
	}
	return making.error;
}

static int company_ask(struct monitor *m)
{
	struct version *leader = leading(m);
	int result = copies_begin(leader);

	if (result == -EAGAIN)
		why_first(making.why, "a process of it has just begun");
	if (result)
		return result;
	making.m = m;
	making.error = 0;
	state_begin(MAKING_ASKED, BEGIN_US);
	copies_lift(&leader->rewind);
	company_word_set(leader, COMPANY_TAKE);
	result = take_wait(m);
	leader->rewind.wanted_copies = 0;
	if (making.state != MAKING_TAKES && m->conduct)
		streams_unmake(m);
	making.state = MAKING_NOT;
	return result;
}

static int company_make(struct monitor *m, uint64_t *stood_us)
{
	struct version *leader = leading(m);
	uint64_t begin = now_us();
	struct straggler late;
	bool stands = leader_stands(m, leader, STAND_US, &late);
	int result = stands ? company_ask(m) : -EAGAIN;

	company_word_set(leader, COMPANY_NONE);
	if (!stands)
		straggler_say(&late, leader, making.why, sizeof(making.why));
	*stood_us += now_us() - begin;
	say_log("twin", "%s: the leader comes to have followers: %s, after %lu us",
		m->session.name, strerror(-result), now_us() - begin);
	return result;
}

/* What takes its time is done before the server stands. */
static int company_prepare(struct monitor *m)
{
	int result = rows_make_late(m);

	if (result)
		return result;
	spill_choose(m);
	result = streams_make(m);
	if (result && m->conduct)
		streams_unmake(m);
	if (!result)
		making.streams = streams_hide(m);
	return result;
}

/* Nobody has come to take them. */
static void streams_drop(struct monitor *m)
{
	if (!making.streams)
		return;
	streams_show(m, making.streams);
	making.streams = NULL;
	streams_unmake(m);
}

/* --- one is wanted ---------------------------------------------------------------------- */

static const char *company_why(int result)
{
	if (result == -EAGAIN)
		return making.why;
	return result == -ENOMEM ? "there is no memory for it" : strerror(-result);
}

static const char *company_begin(struct monitor *m, uint64_t *stood_us, bool *passes)
{
	const char *why = barred(m, passes);
	int result;

	MUST(!m->conduct && !making.streams && making.state == MAKING_NOT);
	if (why)
		return why;
	making.why[0] = 0;
	result = company_prepare(m);
	if (result)
		return company_why(result);
	/* Else it would be quiet again before there is one that follows. */
	twin_want(m);
	result = company_make(m, stood_us);
	streams_drop(m);
	*passes = result == -EAGAIN;
	if (result)
		return company_why(result);
	spill_begin(m);
	making.rests_us = now_us() + *stood_us;
	return NULL;
}

/* Its clients wait for the longer of the two pauses, then, and not for both in one. */
const char *company_want(struct monitor *m, uint64_t *stood_us, bool *passes)
{
	const char *why = m->conduct ? NULL : company_begin(m, stood_us, passes);

	if (why || now_us() >= making.rests_us)
		return why;
	*passes = true;
	return "its server has just stood, and goes on for as long first";
}
