/*
 * A replay's follower that begins with an image: what the monitor knows of its programs it knows
 * from the files, and of its processes as of a twin's (rewind/twin_copy.c).  Each is begun for
 * itself, a child of ours, and stands when it is made; when all are they go on.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/foam/foam.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/log/replay.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/pack/used.h"
#include "engine/outside/report/reports.h"
#include "engine/outside/rewind/copies.h"
#include "engine/outside/start/start.h"

static struct foam *foam_of(const struct version *v)
{
	const struct replay *r = v->monitor->options->replay;

	return r ? r->foam : NULL;
}

bool foam_wanted(const struct version *v)
{
	return foam_of(v) && !v->images;
}

static void copies_fill(struct version *v, const struct foam *first)
{
	struct rewind *rw = &v->rewind;

	MUST(first->head.processes <= COPIES_MAX);
	rw->copies = 0;
	FOAM_EACH(f, (struct foam *)first)
		rw->copy[rw->copies++] = (struct copy){
			.of = f->head.pid, .known = f->head.pid, .pid = f->pid,
			.began = process_began(f->pid),
			.parent = f->head.parent, .group = f->head.group };
	copies_move(v);
	rw->copies = 0;		/* they are no image */
}

static void version_fill(struct version *v, const struct foam *first)
{
	const struct foam_head *h = &first->head;
	struct images *words = &v->brief->images;

	MUST(h->programs <= AREA_IMAGES && h->ended <= ENDED_MAX);
	v->images = h->programs;
	memcpy(v->image, first->program, h->programs * sizeof(*v->image));
	v->area->filters = h->filters;
	memcpy(v->area->unsealed, h->unsealed, sizeof(h->unsealed));
	copies_fill(v, first);
	for (uint32_t i = 0; i < h->ended; i++) {
		words->move[words->moves].was = words->move[words->moves].is =
			first->ended[i].pid;
		words->move[words->moves].parent = first->ended[i].parent;
		words->move[words->moves++].group = 0;
	}
}

static void one_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	ptrace(PTRACE_DETACH, pid, 0, SIGKILL);
}

/* Those that stand, too: they have not become what they were begun for. */
void foam_drop(struct version *v)
{
	FOAM_EACH(f, foam_of(v))
		if (f->pid && !v->images)
			one_kill(f->pid);
	foam_objects_close();
}

/* Nothing of one that was dropped meanwhile. */
static int make(struct version *v, struct foam *f)
{
	int result = v->state == VERSION_ENDED ? -ECANCELED : foam_make(v, f);

	f->made = !result;
	if (!result)
		used_see(v->monitor, f->pid);
	return result;
}

static void lost(struct version *v, const char *why)
{
	foam_drop(v);
	follower_drop(v, VERDICT_UNSUPPORTED, "cannot go on from the image: %s", why);
}

/* All of them stand, and go on together. */
static void all_begin(struct version *v, struct foam *first)
{
	version_fill(v, first);
	twin_comes(v);
	FOAM_EACH(f, first)
		ptrace(PTRACE_DETACH, f->pid, 0, 0);
	foam_objects_close();
	session_note(v->monitor);
}

/*
 * It stands at the end of a call in its name (kernel/remote.c), a stop that nobody has collected:
 * the loop would, and take it for a signal's, at which a process goes on, here without the others.
 */
static void stop_collect(pid_t pid)
{
	siginfo_t stop;

	waitid(P_PID, (id_t)pid, &stop, WSTOPPED | WNOHANG | __WALL);
}

void foam_begin(struct version *v, pid_t pid)
{
	struct foam *first = foam_of(v), *its = NULL;
	bool all = true;
	int result;

	FOAM_EACH(f, first)
		its = f->pid == pid ? f : its;
	result = its ? make(v, its) : -ESRCH;
	if (result) {
		one_kill(pid);
		lost(v, its && its->why[0] ? its->why : strerror(-result));
		return;
	}
	stop_collect(pid);
	FOAM_EACH(f, first)
		all &= f->made;
	if (all)
		all_begin(v, first);
}

/* By its execve, or of what it was before its program was made. */
static void ended_say(struct version *v, int status)
{
	int error = version_start_error(v);
	char why[80];

	if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "a process was killed by %s before it was made",
			 signal_word((uint64_t)WTERMSIG(status)));
	else
		snprintf(why, sizeof(why), "a process has ended before it was made, status %d",
			 WEXITSTATUS(status));
	lost(v, error ? strerror(-error) : why);
}

void foam_ended(struct monitor *m, pid_t pid, int status)
{
	struct version *v = &m->version[m->versions > 1];

	if (!foam_wanted(v))
		return;
	FOAM_EACH(f, foam_of(v))
		if (f->pid == pid) {
			f->pid = 0;
			ended_say(v, status);
			return;
		}
}
