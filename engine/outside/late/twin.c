/*
 * Twins: mve follow without a command.  The leader's threads come to stand as for a takeover.
 * Then its process is asked for a copy of itself (inside/roles/twin.c): while all stand the
 * twin's cursors are put to where the lanes end, and it is followed from there on.  The leader
 * goes on as soon as the copy is made; what the copy does until it follows is its own time.
 *
 * Whatever fails before that the leader goes on as if nothing had been asked, and the row is
 * free again.  What fails later is a follower that is dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/cgroup.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/kernel/shared.h"
#include "engine/outside/late/company.h"
#include "engine/outside/late/cost.h"
#include "engine/outside/late/past.h"
#include "engine/outside/late/rows.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/start/exec.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"

#define STAND_US	10000	/* of its time, for the leader's threads to come to stand */
#define BEGIN_US	20000	/* and where a copy can be made of them */
#define COPY_US		2000000	/* for a copy: more than a fork of 100 GB takes */
#define COPY_LOOK_US	20
#define COMES_MS	5000	/* for it to follow */
#define LOOK_MS		10

/* The one that is being made; while the leader stands the monitor does nothing else. */
static struct {
	struct version *v;	/* its row; NULL: none is */
	const struct follower_options *like;	/* what is asked of it; a name, or NULL */
	uint32_t number;	/* of the copy that is asked for */
	uint64_t began;		/* of the leader's process */
	bool begun, made;
	int error;
} making;

/* --- may it be ------------------------------------------------------------------------- */

static const char *several(const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid != v->server && thread_state(s->pid, (pid_t)s->owner))
			return "it has several processes";
	}
	return NULL;
}

/* For good, as far as one can see; NULL: nothing is against it. */
static const char *barred(struct monitor *m)
{
	const struct version *v = leading(m);

	if (m->options->sampling.stateless)
		return "it was started with --stateless: give the program, behind --";
	if (m->failed)
		return "mve has failed in it, and what it tells may be wrong";
	if (!version_alive(v) || m->finishing)
		return "its server has ended";
	if (v->gone)
		return "its first process has ended";
	if (v->runtime)
		return "a sanitizer's runtime is in it";
	if (version_closed(v))
		return "the server is not dumpable (prctl)";
	return several(v);
}

/* What goes by itself. */
static const char *busy(struct monitor *m)
{
	if (takeover_any(m))
		return "a takeover is under way";
	if (exec_any(m))
		return "a program is on its way through an execve";
	if (version_faults(leading(m)))
		return "its server is in a handler of a deadly signal";
	return NULL;
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
		s->image = 0;
		memset(s->asleep, 0, sizeof(s->asleep));
		for (uint32_t i = 0; i < LANES; i++)
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

/* --- the copy is made -------------------------------------------------------------------- */

/* It is the leader's program at the leader's place. */
static void row_fill(struct version *v, pid_t pid)
{
	const struct version *leader = leading(v->monitor);

	MUST(v->state == VERSION_ENDED && v != leader);
	row_take(v, leader->path, row_words(leader->argv), making.like, "twin");
	v->server = pid;
	v->began = process_began(pid);
	v->state = VERSION_STARTING;
	v->comes_ms = now_ms() + COMES_MS;
	/* Its memory knows the leader's numbers. */
	if (v->rewind.last < leader->rewind.last)
		v->rewind.last = leader->rewind.last;
	v->images = leader->images;
	memcpy(v->image, leader->image, AREA_IMAGES * sizeof(*v->image));
	memcpy(v->execs, leader->execs, sizeof(v->execs));
	memcpy(v->area->unsealed, leader->area->unsealed, sizeof(v->area->unsealed));
	v->area->filters = leader->area->filters;
}

/* Of the leader's process that is asked for a copy, and for this one. */
static bool is_asked(const struct version *leader, const struct request *r)
{
	return making.v && !making.made && (uint32_t)r->args[1] == making.number &&
	       leader->index == leader->monitor->leader && r->pid == leader->server;
}

static int start_send(const struct version *leader, int socket, uint32_t realm)
{
	const struct realm *its = &leader->monitor->realm[realm];
	const struct version *v = making.v;
	struct twin_start start = { .version = v->index, .key = v->key };
	const int fd[TWIN_PARTS] = {
		[TWIN_AREA] = v->area_fd, [TWIN_BRIEF] = v->brief_fd,
		[TWIN_SECTION] = its->section_fd[v->index],
		[TWIN_LEADERS] = its->section_read_fd[leader->index],
	};

	return descriptors_send(socket, fd, TWIN_PARTS, &start, sizeof(start));
}

static int64_t begin_serve(struct version *leader, const struct request *r)
{
	uint32_t realm = (uint32_t)(r->args[1] >> 32);
	int socket, result;

	if (!is_asked(leader, r) || realm >= leader->monitor->realms)
		return -EINVAL;
	if (!realm_fits(leader->monitor, realm, r->tid))
		return -EPERM;
	socket = asker_socket(r->pid, (int)r->args[2]);
	if (socket < 0)
		return socket;
	result = start_send(leader, socket, realm);
	close(socket);
	making.begun = !result;
	return result;
}

/* The kernel says whose it is: the leader's, or the twin's already. */
static int copy_check(const struct version *leader, pid_t pid)
{
	if (pid <= 0)
		return pid ? pid : -EINVAL;
	return pid != leader->server && process_began(pid) >= making.began &&
	       (version_owns(leader, pid, pid) || version_owns(making.v, pid, pid)) ? 0 : -EPERM;
}

static int64_t made_serve(struct version *leader, const struct request *r)
{
	pid_t pid = (pid_t)r->args[2];

	if (!is_asked(leader, r))
		return -EINVAL;
	making.error = copy_check(leader, pid);
	making.made = true;
	if (!making.error) {
		row_fill(making.v, pid);
		streams_follow(leader->monitor, making.v->index, true);
	}
	return making.error;
}

/* It is there, and stands. */
static int64_t is_serve(struct version *v, const struct request *r)
{
	if (making.v == v && !making.made)
		return -EAGAIN;
	if (v->state != VERSION_STARTING || !v->comes_ms || r->pid != v->server)
		return -EINVAL;
	v->comes_ms = 0;
	v->state = VERSION_FOLLOWS;
	v->follows_ms = now_ms();
	past_joined(v->monitor);
	return 0;
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
	default:
		return -EINVAL;
	}
}

/* --- while the leader stands ------------------------------------------------------------- */

/* Its threads are where a copy can be made of them; or its time is over. */
static int copy_wait(struct monitor *m)
{
	uint64_t begin = now_us();

	while (!making.made && now_us() - begin < (making.begun ? COPY_US : BEGIN_US) &&
	       !takeover_any(m)) {
		serve_all(m);
		usleep(COPY_LOOK_US);
	}
	return making.made ? making.error : -EAGAIN;
}

static int copy_ask(struct monitor *m, struct version *v)
{
	struct version *leader = leading(m);
	int result;

	making.v = v;
	making.number = ++leader->rewind.last;
	making.began = leader->began;
	making.made = making.begun = false;
	cursors_begin(m, v->index);
	rewind_word_set(&leader->brief->images.stand, making.number);
	streams_changed(m);
	result = copy_wait(m);
	rewind_word_set(&leader->brief->images.stand, 0);
	making.v = NULL;
	return result;
}

/* How long the leader stood is in *stood_us. */
static int copy_make(struct monitor *m, struct version *v, uint64_t *stood_us)
{
	struct version *leader = leading(m);
	uint64_t begin = now_us();
	int result;

	MUST(v->state == VERSION_ENDED && !takeover_any(m));
	streams_sweep(m);
	conduct_begin(m, v->index);
	result = leader_stands(m, leader, STAND_US) ? copy_ask(m, v) : -EAGAIN;
	unpark(m, leader->index);
	*stood_us += now_us() - begin;
	return result;
}

/* --- one is wanted ------------------------------------------------------------------------- */

static const char *copy_why(int result)
{
	if (result == -EAGAIN)
		return "its threads do not come to stand, or the kernel makes no process now";
	return result == -ENOMEM ? "there is no memory for it" : strerror(-result);
}

/* All that it may write: a fork is cheap, and what comes later must not end the server. */
static const char *too_much(struct monitor *m)
{
	static char text[WHY_MAX];
	uint64_t cost = cost_of(leading(m)->server), room = cost_room();

	if (cost <= room)
		return NULL;
	snprintf(text, sizeof(text), "it may come to cost %lu MiB of memory, and there are %lu",
		 cost >> 20, room >> 20);
	return text;
}

static struct version *row_for(struct monitor *m, const char *name, uint64_t *stood_us,
			       const char **why, bool *passes)
{
	struct version *v;

	*why = barred(m);
	if (!*why && !m->conduct)
		*why = company_want(m, stood_us, passes);
	if (*why)
		return NULL;
	v = row_find(m, name, why, passes);
	if (!v)
		return NULL;
	*passes = true;
	*why = busy(m);
	if (!*why && !old_stream_read(m, v, false))
		*why = "a follower still reads what another told in its place";
	if (*why)
		return NULL;
	*passes = false;
	*why = too_much(m);
	return *why ? NULL : v;
}

struct version *twin_begin(struct monitor *m, const struct follower_options *like,
			   uint64_t *stood_us, char *why, size_t size, bool *passes)
{
	const char *no;
	struct version *v = row_for(m, like->name, stood_us, &no, passes);
	int result = v ? row_renew(v) : 0;

	making.like = like;
	if (v && !result)
		result = copy_make(m, v, stood_us);
	if (*stood_us)
		past_stood(m, PAUSE_twin, *stood_us);
	*passes |= result == -EAGAIN;
	if (v && result)
		no = copy_why(result);
	snprintf(why, size, "%s", no ? no : "");
	if (no)
		return NULL;
	if (m->cgroup >= 0)
		cgroup_put(m->cgroup, v->name, v->server);
	say_log("twin", "%s/%s: pid %d, the leader stood for %lu us", m->session.name, v->name,
		v->server, *stood_us);
	monitor_wake_after(m, LOOK_MS);
	return v;
}

void twin_look(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (!v->comes_ms || v->state != VERSION_STARTING)
			continue;
		if (now_ms() >= v->comes_ms)
			follower_drop(v, VERDICT_UNSUPPORTED, "its copy does not come to follow");
		else
			monitor_wake_after(m, LOOK_MS);
	}
}
