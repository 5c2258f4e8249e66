/*
 * A follower goes back to its image: its processes are ended, and the image goes on at the
 * same place of the streams.
 */
#include <errno.h>
#include <limits.h>
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

static bool may_go_back(const struct version *v)
{
	const struct monitor *m = v->monitor;
	const struct rewind *rw = &v->rewind;

	return rw->image && rw->state <= REWIND_STANDS && !takeover_any(m) &&
	       version_lives(v) && copies_live(rw);
}

/* Why it does has been noted. */
static void go_back(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	struct rewind *rw = &v->rewind;

	MUST(rw->image && rw->state <= REWIND_STANDS);
	if (rw->state == REWIND_STANDS)
		stand_over(v, -EINTR);
	heal_note(v, r);
	say_log("rewind", "%s/%s: tries again: %s, %u healed", m->session.name, v->name, rw->why,
		v->brief->images.heals);
	held_forget(m, v);
	cursors_need(v, true);
	processes_kill(v);
	rw->rewinds++;
	rw->needed = true;
	rewind_state_begin(v, REWIND_ENDS, END_MS);
}

bool rewind_has_lost(const struct version *v)
{
	return v->rewind.image && !cursors_are_kept(v, v->rewind.image);
}

void rewind_held(struct version *v)
{
	if (may_go_back(v))
		cursors_need(v, true);
}

bool rewind_try(struct version *v, const struct request *r)
{
	if (!may_go_back(v) || rewind_has_lost(v) ||
	    (r->args[0] != VERDICT_DIVERGED && r->args[0] != VERDICT_CRASHED) || !met_count(v, r))
		return false;
	race_note(v, r);
	go_back(v, r);
	return true;
}

/* The leader's program and its follower's have one name; a file of either need not answer. */
static bool is_same_program(const struct version *v)
{
	const pid_t pid[2] = { v->server, leading(v->monitor)->server };
	char path[48], file[2][PATH_MAX];
	ssize_t n[2];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/exe", pid[i]);
		n[i] = readlink(path, file[i], sizeof(file[i]));
	}
	return n[0] > 0 && n[0] == n[1] && !memcmp(file[0], file[1], (size_t)n[0]);
}

/*
 * Its threads take locks in another order than the leader's.  Where an image can go on that
 * is found again in order, before anything else differs; else it goes on as it is.
 */
int64_t order_lost(struct version *v, const struct request *r)
{
	struct rewind *rw = &v->rewind;

	if (rw->disordered || (r->args[2] == LOSS_LOCK && !is_same_program(v)))
		return -EPERM;
	if (!may_go_back(v) || held_any(v->monitor, v, REQ_VERDICT) || rewind_has_lost(v))
		return -EAGAIN;
	if (++rw->lost > v->monitor->options->rewind) {
		rw->disordered = true;
		return -EPERM;
	}
	race_note_lock(v, r);
	go_back(v, r);
	return REPLY_LATER;
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
	/* What differs is to be met again before there is another. */
	v->area->image_chunks = words->chunks;
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

/* On a busy machine it takes them long to have a processor. */
static bool any_runs(const struct version *v)
{
	const struct rewind *rw = &v->rewind;
	bool any = false;

	for (unsigned i = 0; i < rw->copies && !any; i++)
		any = process_runs(rw->copy[i].pid, AREA_THREADS);
	for (uint32_t i = 0; i < version_slots(v) && !any; i++) {
		const struct slot *s = &v->area->slot[i];

		any = s->owner && s->pid > 0 && thread_runs(s->pid, (pid_t)s->owner);
	}
	return any;
}

void back_look(struct version *v, bool late)
{
	const struct rewind *rw = &v->rewind;

	if (late && any_runs(v)) {
		rewind_state_begin(v, rw->state, rw->state == REWIND_ENDS ? END_MS : WAKE_MS);
		late = false;
	}
	if (rw->state == REWIND_ENDS && all_over(v))
		image_wake(v);
	else if (rw->state == REWIND_ENDS && late)
		rewind_lose(v, "its processes did not end");
	else if (rw->state == REWIND_WAKES && (late || !copies_live(rw)))
		rewind_lose(v, "its image did not go on");
}
