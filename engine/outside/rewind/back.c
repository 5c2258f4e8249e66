/*
 * A follower goes back to its image: its processes are ended, and the image goes on at the
 * same place of the streams.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/rewind_parts.h"
#include "engine/outside/takeover/takeover.h"

#define END_MS		3000	/* for what was killed to be gone */
#define WAKE_MS		5000	/* for an image to go on */

/* All but the image; which is its first process from here on. */
static void processes_kill(struct version *v)
{
	struct rewind *rw = &v->rewind;
	const struct copy *first = copy_kept(rw, v->server);

	MUST(rw->copies);
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid > 0 && s->pid != v->server)
			version_kill_one(v, s->pid);
	}
	rw->oldest = rw->oldest ? rw->oldest : v->began;
	if (!first)
		return;
	process_signal(v->server, v->began, SIGKILL);
	v->server = first->pid;
	v->began = first->began;
	v->gone = v->reaped = false;
}

bool rewind_try(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	struct rewind *rw = &v->rewind;

	if (!rw->image || rw->state > REWIND_STANDS ||
	    (r->args[0] != VERDICT_DIVERGED && r->args[0] != VERDICT_CRASHED) ||
	    takeover_any(m) || m->finishing || !version_lives(v) || !copies_live(rw) ||
	    !met_count(v, r))
		return false;
	if (rw->state == REWIND_STANDS)
		stand_over(v, -EINTR);
	race_note(v, r);
	say_log("rewind", "%s/%s: tries again: %s", m->session.name, v->name, rw->why);
	held_forget(m, v);
	processes_kill(v);
	rw->rewinds++;
	rw->needed = true;
	rewind_state_begin(v, REWIND_ENDS, END_MS);
	return true;
}

/* All threads of it are gone: a first one that has ended waits for the others. */
static bool process_over(pid_t pid)
{
	const struct dirent *d;
	bool over = true;
	char path[48], state;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && over && (d = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);

		state = tid > 0 ? thread_state(pid, tid) : 0;
		over = !state || state == 'Z' || state == 'X';
	}
	if (tasks)
		closedir(tasks);
	return over;
}

static bool all_over(const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid > 0 && !process_over(s->pid))
			return false;
	}
	return true;
}

/* What its threads said of themselves is over; counts stay. */
static void slots_free(struct version *v)
{
	struct area *a = v->area;

	for (uint32_t i = 0; i < version_slots(v); i++) {
		struct slot *s = &a->slot[i];

		s->asked = s->asleep = s->matching = s->match_over = s->faulting = s->parked = 0;
		__atomic_store_n(&s->holder, 0, __ATOMIC_RELAXED);
	}
	a->newborn = 0;
	memset(a->births, 0, sizeof(a->births));
	memset(a->asking, 0, sizeof(a->asking));
}

static void rewind_lose(struct version *v, const char *why)
{
	struct rewind *rw = &v->rewind;

	rw->state = REWIND_NONE;
	follower_drop(v, VERDICT_DIVERGED, "diverged: %s; it was not tried again: %s", rw->why,
		      why);
}

static void image_wake(struct version *v)
{
	struct rewind *rw = &v->rewind;
	struct images *words = &v->brief->images;
	uint32_t image = rw->image;

	MUST(image && rw->copies);
	slots_free(v);
	if (!cursors_restore(v, image, ++rw->last)) {
		rewind_lose(v, "the ring has no room for what its image had still to read");
		return;
	}
	copies_move(v);
	words->copy = rw->last;
	words->tries++;
	rewind_word_set(&words->wake, image);
	rewind_state_begin(v, REWIND_WAKES, WAKE_MS);
}

/* All are there again, each with a copy of what it was, or there is no further image. */
static void woke(struct version *v)
{
	struct rewind *rw = &v->rewind;

	rw->state = REWIND_NONE;
	copies_answer(v, 0);
	copies_take(rw, v->brief->images.copy);
	if (copies_live(rw))
		return;
	copies_kill(rw);
	cursors_forget(v);
}

int64_t image_woke(struct version *v, const struct request *r)
{
	struct rewind *rw = &v->rewind;
	struct copy *c = copy_of(rw, r->pid);

	if (rw->state != REWIND_WAKES || !c)
		return -EINVAL;
	copy_have(v, c, (pid_t)r->args[1]);
	if (copies_wait(rw, c, r))
		woke(v);
	return REPLY_LATER;
}

void back_look(struct version *v, bool late)
{
	const struct rewind *rw = &v->rewind;

	if (rw->state == REWIND_ENDS && all_over(v))
		image_wake(v);
	else if (rw->state == REWIND_ENDS && late)
		rewind_lose(v, "its processes did not end");
	else if (rw->state == REWIND_WAKES && (late || !copies_live(rw)))
		rewind_lose(v, "its image did not go on");
}
