/*
 * A program may have other rights than who executed it: it is root's by its file, or gets back
 * capabilities that its process had given up (execve gives root all that it is not barred
 * from).  What it tells belongs into the sections of those that have its rights, and it may
 * not write into the others' (monitor/realms.c).
 *
 * Which rights it has the kernel says once it stands at its first instruction.  Then the
 * leader's is given a lane of its realm, and its old one is closed.  The old program has
 * told followers that this may come (EXEC_MOVES); the twin's waits until its lane is closed
 * and asks where to go on.  That is answered from what was noted here, never from what
 * stands in the lane: who wrote that had other rights.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/core/ring.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/monitor/realms.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/start/exec_move.h"

#define LANE_LOOK_MS	2

/* Where the program went whose execve was told in the lane, in this life of it. */
static struct gone {
	uint32_t life, to, to_life;
	uint32_t version;	/* whose stream that is */
	struct layout layout;
} gone[LANES_ALL];		/* most pages of it are never touched */

static struct streams streams_at(const struct monitor *m, const struct version *v, uint32_t lane)
{
	MUST(lane_is(m, lane));
	return (struct streams){ m->realm[lane / LANES].conduct, v->index };
}

bool exec_move_is(const struct version *v, const struct request *r)
{
	const struct lane *l;

	if (!lane_is(v->monitor, r->args[5]))
		return false;
	l = lane_at(v->monitor, v->index, (uint32_t)r->args[5]);
	return l->pid == r->pid && l->owner == r->tid;
}

bool exec_move_lane(struct monitor *m, pid_t pid, struct tracee *t)
{
	int64_t lane;

	if (t->left >= LANES_ALL || t->role != ROLE_LEADER || t->lane != t->left)
		return true;
	t->began_ms = t->began_ms ? t->began_ms : now_ms();
	lane = realm_lane(t->version, pid, t->left, now_ms() - t->began_ms);
	if (lane == -EAGAIN) {
		monitor_wake_after(m, LANE_LOOK_MS);
		return false;
	}
	say_log("realm", "a program of %d goes from lane %u to %ld", pid, t->left, lane);
	t->lane = lane < 0 ? LANES_ALL : (uint32_t)lane;
	return true;
}

void exec_move_told(struct version *v, const struct tracee *t, const struct layout *layout)
{
	struct monitor *m = v->monitor;
	struct streams s = streams_at(m, v, t->left);
	struct gone *g = &gone[t->left];

	*g = (struct gone){ .to = LANES_ALL };
	if (layout && lane_is(m, t->lane))
		*g = (struct gone){ .life = lane_at(m, v->index, t->left)->life, .to = t->lane,
				    .to_life = lane_at(m, v->index, t->lane)->life,
				    .version = v->index, .layout = *layout };
	lane_close(&s, t->left % LANES);
	streams_changed(m);
}

bool exec_move_follows(struct version *v, const struct request *r, struct tracee *t,
		       struct layout *like)
{
	struct monitor *m = v->monitor;
	uint64_t lane = r->args[5], call = r->at + offsetof(struct request, call);
	const struct gone *g;
	const struct cursor *c;

	if (!lane_is(m, lane))
		return false;
	g = &gone[lane];
	c = cursor_at(m, v->index, (uint32_t)lane);
	if (c->pid != r->pid || c->owner != r->tid || !lane_is(m, g->to) ||
	    c->life != g->life || c->source != g->version ||
	    asker_give(r, call, &g->layout, sizeof(g->layout)))
		return false;
	*like = g->layout;
	t->left = (uint32_t)lane;
	t->lane = g->to;
	return true;
}

void exec_move_reads(struct version *v, pid_t pid, const struct tracee *t)
{
	struct monitor *m = v->monitor;
	struct streams old = streams_at(m, v, t->left), new = streams_at(m, v, t->lane);
	struct cursor *c = cursor_at(m, v->index, t->lane);
	const struct gone *g = &gone[t->left];

	/* Of whoever read it before nothing is left: the lane would seem to be a dead thread's. */
	c->pid = c->owner = pid;
	cursor_begin(&new, t->lane % LANES, g->to_life, g->version);
	cursor_done(&old, t->left % LANES);
}
