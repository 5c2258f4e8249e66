/*
 * Rewind: a difference that is tried again before it is believed.
 *
 * Threads that agree by plain memory cannot be ordered from their calls, so that now and
 * then a follower comes to differ that is no other program.  A follower keeps an image of
 * itself, asleep (inside/rewind/).  Where it differs its processes are ended, the image goes
 * on at the same place of the stream, and meets the same events again.  What differs every
 * time at the same event is a divergence; what does not was a race, which is counted.
 *
 * Only the follower stands for this, and only it is ended.  The leader knows of an image as
 * of a reader that it need not wait for.  Each state but the first has a limit; behind that,
 * and whenever an image cannot be had, all is as it is without.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/report/report.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/takeover/takeover.h"

#define STAND_MS	300	/* for threads to come to stand */
#define END_MS		3000	/* for what was killed to be gone */
#define WAKE_MS		5000	/* for an image to go on */
#define LOOK_MS		1
#define FAILED_MOST	8	/* then the pause before another try grows no more */
#define SHARE		16	/* of the ring is read between two images, */
#define DOUBLED_MOST	3	/* and up to a half where none is needed */

static void word_set(uint32_t *word, uint32_t value)
{
	/* Who sees it sees what was written beside it. */
	PUBLISH(image_wake, word, value);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void state_begin(struct version *v, enum rewind_state state, unsigned ms)
{
	v->rewind.state = state;
	v->rewind.until_ms = now_ms() + ms;
	monitor_wake_after(v->monitor, state == REWIND_STANDS ? ms : LOOK_MS);
}

/* --- an image is taken ---------------------------------------------------------------- */

/* A quiet follower asks for none: one is begun for it, less often each time in vain. */
static void image_again(struct version *v)
{
	struct rewind *rw = &v->rewind;
	unsigned ms = STAND_MS << rw->failed;

	if (rw->image || rw->again_ms)
		return;
	MUST(rw->failed <= FAILED_MOST);
	rw->failed += rw->failed < FAILED_MOST;
	rw->again_ms = now_ms() + ms;
	monitor_wake_after(v->monitor, ms);
}

/* Why it keeps none, for as long as that is so; NULL: nothing is against it. */
static const char *barred(const struct version *v)
{
	const char *why = v->runtime ? "a sanitizer's runtime is in it" : NULL;

	for (uint32_t i = 0; i < version_slots(v) && !why; i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid != v->server && thread_state(s->pid, (pid_t)s->owner))
			why = "it has several processes";
	}
	return why;
}

static void barred_say(struct version *v, const char *why)
{
	if (!v->rewind.refused)
		say_log("rewind", "%s/%s: keeps no image of itself: %s", v->monitor->session.name,
			v->name, why);
	v->rewind.refused = true;
}

static bool may_stand(const struct version *v)
{
	const struct monitor *m = v->monitor;

	return m->options->rewind && v->index != m->leader && v->state == VERSION_FOLLOWS &&
	       !v->gone && !v->judge_ms && !v->crash[0] && !takeover_any(m) && !m->finishing &&
	       (v->join == JOIN_NONE || v->join == JOIN_DONE) && v->rewind.state == REWIND_NONE &&
	       !held_any(m, v, REQ_VERDICT) && cursors_are_leaders(v);
}

static void threads_knock(const struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid == v->server)
			thread_knock(v->server, (pid_t)s->owner);
	}
}

static int64_t image_due(struct version *v)
{
	const char *why;

	if (!may_stand(v))
		return -EAGAIN;
	why = barred(v);
	if (why) {
		barred_say(v, why);
		return -EPERM;
	}
	state_begin(v, REWIND_STANDS, STAND_MS);
	word_set(&v->brief->images.stand, ++v->rewind.last);
	threads_knock(v);
	return 0;
}

static int64_t image_begin(struct version *v)
{
	int64_t result = image_due(v);

	if (result == -EAGAIN)
		image_again(v);
	return result;
}

static void stand_over(struct version *v)
{
	v->rewind.state = REWIND_NONE;
	word_set(&v->brief->images.stand, 0);
}

static void image_kill(struct rewind *rw)
{
	if (rw->pid)
		process_signal(rw->pid, rw->began, SIGKILL);
	rw->pid = 0;
	rw->image = 0;
}

static void image_have(struct rewind *rw, uint32_t image, pid_t pid)
{
	MUST(image && pid > 0);
	rw->image = image;
	rw->pid = pid;
	rw->began = process_began(pid);
}

/* What was needed seldom is taken seldom. */
static void images_pace(struct rewind *rw)
{
	if (rw->needed)
		rw->doubled = 0;
	else if (rw->image && rw->doubled < DOUBLED_MOST)
		rw->doubled++;
	rw->failed = rw->image ? 0 : rw->failed;
	rw->needed = false;
	rw->again_ms = 0;
}

/* All threads stand, and its copy is there: this is what it goes back to from here on. */
static int64_t image_made(struct version *v, const struct request *r)
{
	struct rewind *rw = &v->rewind;
	pid_t pid = (pid_t)r->args[1];

	if (rw->state != REWIND_STANDS || r->args[2] != rw->last || r->pid != v->server)
		return -EINVAL;
	if (pid <= 0 || !version_owns(v, pid, pid)) {
		barred_say(v, "it cannot be copied");
		stand_over(v);
		return -EINVAL;
	}
	images_pace(rw);
	image_kill(rw);
	cursors_keep(v, rw->last);
	image_have(rw, rw->last, pid);
	say_log("rewind", "%s: image %u, after %lu ms", v->name, rw->last,
		now_ms() + STAND_MS - rw->until_ms);
	rw->images++;
	rw->mets = 0;
	v->brief->images.tries = 0;
	stand_over(v);
	return 0;
}

/* --- it goes back ---------------------------------------------------------------------- */

static const struct window_row *row_of(const struct version *v, const struct request *r)
{
	const struct slot *s = &v->area->slot[r->slot];

	return &s->window[(s->calls - 1) % WINDOW];
}

/* Whose code made the call, or crashed. */
static void place_write(char *text, size_t size, const struct version *v, const struct request *r)
{
	uint64_t place = v->area->slot[r->slot].place;
	const struct call_desc *d = call_find((long)row_of(v, r)->call);
	const char *what = r->args[0] == VERDICT_CRASHED ? signal_word(r->args[1]) :
			   d ? d->name : "a call";
	int n = snprintf(text, size, "%s at 0x%lx", what, place);
	struct maps maps;

	if (maps_read_part(v->server, place, place + 1, &maps))
		maps.n = 0;
	for (size_t i = 0; i < maps.n && n > 0; i++) {
		const struct map *at = &maps.map[i];
		const char *base = strrchr(at->path, '/');

		if (place >= at->start && place < at->end && base)
			snprintf(text, size, "%s at %.80s+0x%lx", what, base + 1,
				 at->offset + place - at->start);
	}
	maps_free(&maps);
}

static void race_note(struct version *v, const struct request *r)
{
	struct rewind *rw = &v->rewind;
	unsigned i = 0;

	place_write(rw->why, sizeof(rw->why), v, r);
	while (i < rw->races && strcmp(rw->race[i].text, rw->why))
		i++;
	if (i == RACES_MAX) {
		rw->races_more++;
		return;
	}
	strcpy(rw->race[i].text, rw->why);
	rw->race[i].times++;
	rw->races += i == rw->races;
}

static struct met met_of(const struct version *v, const struct request *r)
{
	const struct cursor *c = cursor_at(v->monitor, v->index, (uint32_t)r->args[5]);

	return (struct met){ (uint32_t)r->args[5], c->life, c->at, 0 };
}

static struct met *met_find(const struct version *v, const struct request *r)
{
	const struct rewind *rw = &v->rewind;
	struct met now;

	if (!lane_is(v->monitor, r->args[5]))
		return NULL;
	now = met_of(v, r);
	for (unsigned i = 0; i < rw->mets; i++)
		if (rw->met[i].lane == now.lane && rw->met[i].life == now.life &&
		    rw->met[i].at == now.at)
			return (struct met *)&rw->met[i];
	return NULL;
}

unsigned rewind_tried(const struct version *v, const struct request *r)
{
	const struct met *met = met_find(v, r);

	return met ? met->times : 1;
}

bool rewind_is_again(const struct version *v, const struct request *r)
{
	return met_find(v, r) && v->rewind.image;
}

/* False: it has been tried often enough, or at too many places. */
static bool met_count(struct version *v, const struct request *r)
{
	struct rewind *rw = &v->rewind;
	struct met *met = met_find(v, r);

	if (!met && (rw->mets == MET_MAX || !lane_is(v->monitor, r->args[5])))
		return false;
	if (!met) {
		met = &rw->met[rw->mets++];
		*met = met_of(v, r);
	}
	return ++met->times < v->monitor->options->rewind;
}

static bool image_lives(const struct rewind *rw)
{
	return rw->pid && process_began(rw->pid) == rw->began;
}

/* All but the image; which is its first process from here on. */
static void processes_kill(struct version *v)
{
	struct rewind *rw = &v->rewind;

	MUST(rw->pid > 0 && rw->pid != v->server);
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && s->pid > 0 && s->pid != v->server)
			version_kill_one(v, s->pid);
	}
	process_signal(v->server, v->began, SIGKILL);
	v->server = rw->pid;
	v->began = rw->began;
	v->gone = v->reaped = false;
}

bool rewind_try(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	struct rewind *rw = &v->rewind;

	if (!rw->image || rw->state > REWIND_STANDS ||
	    (r->args[0] != VERDICT_DIVERGED && r->args[0] != VERDICT_CRASHED) ||
	    takeover_any(m) || m->finishing || !version_lives(v) || !image_lives(rw) ||
	    !met_count(v, r))
		return false;
	if (rw->state == REWIND_STANDS)
		stand_over(v);
	race_note(v, r);
	say_log("rewind", "%s/%s: tries again: %s", m->session.name, v->name, rw->why);
	held_forget(m, v);
	processes_kill(v);
	rw->rewinds++;
	rw->needed = true;
	state_begin(v, REWIND_ENDS, END_MS);
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

		if (s->owner && s->pid > 0 && s->pid != v->server && !process_over(s->pid))
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

	MUST(image && v->server == rw->pid);
	slots_free(v);
	if (!cursors_restore(v, image, ++rw->last)) {
		rewind_lose(v, "the ring has no room for what its image had still to read");
		return;
	}
	words->copy = rw->last;
	words->tries++;
	word_set(&words->wake, image);
	state_begin(v, REWIND_WAKES, WAKE_MS);
}

/* It is there again, with a copy of what it was. */
static int64_t image_woke(struct version *v, const struct request *r)
{
	struct rewind *rw = &v->rewind;
	pid_t pid = (pid_t)r->args[1];

	if (rw->state != REWIND_WAKES || r->pid != v->server)
		return -EINVAL;
	rw->state = REWIND_NONE;
	rw->image = 0;
	rw->pid = 0;
	if (pid > 0 && version_owns(v, pid, pid))
		image_have(rw, v->brief->images.copy, pid);
	else
		cursors_forget(v);
	return 0;
}

/* --- for others -------------------------------------------------------------------------- */

int64_t rewind_serve(struct version *v, const struct request *r)
{
	switch (r->args[0]) {
	case IMAGE_DUE:
		return image_begin(v);
	case IMAGE_MADE:
		return image_made(v, r);
	case IMAGE_WOKE:
		return image_woke(v, r);
	default:
		return -EINVAL;
	}
}

static void again_look(struct version *v)
{
	struct rewind *rw = &v->rewind;
	uint64_t now = now_ms();

	if (!rw->again_ms || rw->state != REWIND_NONE)
		return;
	if (now < rw->again_ms) {
		monitor_wake_after(v->monitor, (unsigned)(rw->again_ms - now));
		return;
	}
	rw->again_ms = 0;
	if (!rw->image)
		image_begin(v);
}

static void state_look(struct version *v)
{
	struct rewind *rw = &v->rewind;
	bool late = now_ms() >= rw->until_ms;

	if (rw->state == REWIND_STANDS && late) {
		say_log("rewind", "%s: its threads did not come to stand", v->name);
		stand_over(v);
		image_again(v);
	} else if (rw->state == REWIND_ENDS && all_over(v)) {
		image_wake(v);
	} else if (rw->state == REWIND_ENDS && late) {
		rewind_lose(v, "its processes did not end");
	} else if (rw->state == REWIND_WAKES && (late || !image_lives(rw))) {
		rewind_lose(v, "its image did not go on");
	} else if (rw->state != REWIND_NONE) {
		monitor_wake_after(v->monitor, LOOK_MS);
	}
}

void rewind_begin(struct version *v)
{
	const struct run_options *o = v->monitor->options;
	bool may = o->rewind && v->index != v->monitor->leader && version_lives(v);
	uint64_t part = o->ring_bytes / CHUNK_SIZE / SHARE << v->rewind.doubled;

	v->brief->images.chunks = may ? (uint32_t)part + 1 : 0;
}

void rewind_look(struct monitor *m)
{
	for (unsigned i = 1; m->options->rewind && i < m->versions; i++) {
		struct version *v = &m->version[i];
		bool keeps = i != m->leader && v->state == VERSION_FOLLOWS;

		if (!v->brief)
			continue;
		rewind_begin(v);
		if (keeps) {
			again_look(v);
			state_look(v);
		} else if (v->rewind.image) {
			rewind_end(v);
		}
	}
}

bool rewind_busy(const struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (rewind_is_on(&m->version[i]))
			return true;
	return false;
}

void rewind_end(struct version *v)
{
	struct rewind *rw = &v->rewind;

	if (rw->state == REWIND_STANDS)
		stand_over(v);
	if (!rw->image)
		return;
	MUST(v->monitor->conduct);
	/* One that goes on is the follower itself. */
	if (rw->state == REWIND_NONE)
		image_kill(rw);
	cursors_forget(v);
	rw->image = 0;
	rw->mets = 0;
}

void rewind_end_all(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		rewind_end(&m->version[i]);
}

bool rewind_ended(struct monitor *m, pid_t pid)
{
	for (unsigned i = 0; i < m->versions; i++) {
		struct rewind *rw = &m->version[i].rewind;

		if (rw->pid != pid || m->version[i].server == pid)
			continue;
		rw->pid = 0;
		rewind_end(&m->version[i]);
		image_again(&m->version[i]);
		return true;
	}
	return false;
}

json_t *rewind_json(const struct version *v)
{
	const struct rewind *rw = &v->rewind;
	json_t *races = json_array();

	MUST(rw->races <= RACES_MAX);
	for (unsigned i = 0; i < rw->races; i++)
		json_array_append_new(races, json_pack("{s:s, s:I}", "place", rw->race[i].text,
						       "times", (json_int_t)rw->race[i].times));
	return json_pack("{s:i, s:I, s:I, s:o, s:I}", "image", rw->image ? (int)rw->pid : 0,
			 "images", (json_int_t)rw->images, "rewinds",
			 (json_int_t)rw->rewinds, "races", races, "races_elsewhere",
			 (json_int_t)rw->races_more);
}
