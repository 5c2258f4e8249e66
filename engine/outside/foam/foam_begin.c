/*
 * A replay's follower that begins with an image: what the monitor knows of a program it knows
 * from the file, and of its process as of a twin's (rewind/twin_copy.c).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/pack/used.h"

static struct foam *foam_of(const struct version *v)
{
	const struct replay *r = v->monitor->options->replay;

	return r ? r->foam : NULL;
}

bool foam_wanted(const struct version *v)
{
	return foam_of(v) && !v->images;
}

static void version_fill(struct version *v, pid_t pid, const struct foam *f)
{
	const struct foam_head *h = &f->head;
	struct images *words = &v->brief->images;

	MUST(h->programs <= AREA_IMAGES);
	v->images = h->programs;
	memcpy(v->image, f->program, h->programs * sizeof(*v->image));
	v->area->filters = h->filters;
	memcpy(v->area->unsealed, h->unsealed, sizeof(h->unsealed));
	words->moves = 1;
	words->move[0].was = h->pid;
	words->move[0].is = pid;
	words->move[0].parent = h->parent;
	words->move[0].group = pid;
	v->rewind.wanted[0] = (struct copy){ .of = pid };
	v->rewind.wanted_copies = 1;
}

void foam_begin(struct version *v, pid_t pid)
{
	struct foam *f = foam_of(v);
	int result = v->state == VERSION_ENDED ? -ECANCELED : foam_make(v, pid, f);

	if (result) {
		kill(pid, SIGKILL);
		ptrace(PTRACE_DETACH, pid, 0, SIGKILL);
		follower_drop(v, VERDICT_UNSUPPORTED, "cannot go on from the image: %s",
			      f->why[0] ? f->why : strerror(-result));
		return;
	}
	version_fill(v, pid, f);
	used_see(v->monitor, pid);
	twin_comes(v);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	session_note(v->monitor);
}
