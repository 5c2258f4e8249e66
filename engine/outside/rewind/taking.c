/*
 * An image of a follower is taken: its threads are asked to stand, and what its copy is
 * then is what it goes back to.
 */
#include <errno.h>
#include <unistd.h>

#include "engine/abi/waits.h"
#include "engine/core/must.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/past.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/rewind_parts.h"
#include "engine/outside/takeover/takeover.h"

#define STAND_MS	300	/* for threads to come to stand, of their own time */
#define FAILED_MOST	8	/* then the pause before another try grows no more */
#define SHARE		16	/* of the ring is read between two images, */
#define DOUBLED_MOST	3	/* and up to a half where none is needed */
#define TRY_US		200000	/* of its time, one at a time, between two: a try works as long */

/* A quiet follower asks for none: one is begun for it, less often each time in vain. */
void image_again(struct version *v)
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

/* Why it keeps none is said once. */
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

static void threads_knock(struct version *v)
{
	for (uint32_t i = 0; i < version_slots(v); i++) {
		const struct slot *s = &v->area->slot[i];

		if (s->owner && copy_of(&v->rewind, s->pid))
			thread_knock(s->pid, (pid_t)s->owner);
	}
}

static int64_t image_due(struct version *v)
{
	int result;

	if (!may_stand(v))
		return -EAGAIN;
	result = copies_begin(v);
	if (result == -E2BIG)
		barred_say(v, "it has too many processes");
	if (result)
		return result;
	v->brief->images.monitor = getpid();
	rewind_state_begin(v, REWIND_STANDS, STAND_MS);
	given_begin(&v->rewind.stands, v, STAND_MS * 1000);
	rewind_word_set(&v->brief->images.stand, ++v->rewind.last);
	threads_knock(v);
	return 0;
}

/* But for a difference that is held, and will go back to it. */
static void need_no_more(struct version *v)
{
	cursors_need(v, held_any(v->monitor, v, REQ_VERDICT));
}

int64_t image_begin(struct version *v)
{
	int64_t result = image_due(v);

	/* The leader waits no longer for what may never come. */
	if (result && v->rewind.state == REWIND_NONE)
		need_no_more(v);
	if (result == -EAGAIN)
		image_again(v);
	return result;
}

/* Its own time: on a busy machine it may have had no processor. */
static bool is_still(struct version *v)
{
	struct rewind *rw = &v->rewind;
	uint64_t at = streams_taken(v->monitor, v->index);

	if (!rw->still.v || rw->still_at != at) {
		given_begin_waited(&rw->still, v, WAIT_MIDDLE_NS / 1000 / 2);
		rw->still_at = at;
		return false;
	}
	return given_over(&rw->still);
}

bool image_still(struct monitor *m)
{
	bool all = true;

	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (i != m->leader && v->rewind.image && v->state == VERSION_FOLLOWS)
			all &= is_still(v);
	}
	return all;
}

void stand_over(struct version *v, int64_t reply)
{
	past_stood(v->monitor, PAUSE_image, now_us() - v->rewind.stands.began_us);
	v->rewind.state = REWIND_NONE;
	need_no_more(v);
	copies_answer(v, reply);
	copies_drop(&v->rewind);
	rewind_word_set(&v->brief->images.stand, 0);
}

/* What it has worked since the image before; a process that went back has its own time. */
static uint64_t worked_since(struct rewind *rw, uint64_t used_us)
{
	uint64_t before = rw->worked_us;

	rw->worked_us = used_us;
	return used_us > before ? used_us - before : 0;
}

/*
 * What was needed seldom is taken seldom: one that is taken between a race and what shows it is of
 * no use.  One at a time there are no such races but where the baton was lost, and what differs is
 * another program's, mostly: that is to be known soon.
 */
void images_pace(struct rewind *rw, bool in_turns, uint64_t used_us)
{
	uint64_t us = in_turns ? worked_since(rw, used_us) : 0;

	if (rw->needed || us > TRY_US)
		rw->doubled = 0;
	else if (rw->image && rw->doubled < DOUBLED_MOST && us <= TRY_US / 2)
		rw->doubled++;
	rw->failed = rw->image ? 0 : rw->failed;
	rw->needed = false;
	rw->again_ms = 0;
}

/* All processes have copies: these are what it goes back to from here on. */
static void image_keep(struct version *v)
{
	struct rewind *rw = &v->rewind;

	/* Children that have ended worked, too: a try makes them anew. */
	images_pace(rw, v->monitor->options->one_at_a_time,
		    rw->stands.cpu_us + given_ended_us(v));
	copies_answer(v, 0);
	copies_kill(rw);
	cursors_keep(v, rw->last);
	copies_take(rw, rw->last);
	say_log("rewind", "%s: image %u of %u processes, after %lu ms", v->name, rw->last,
		rw->copies, (now_us() - rw->stands.began_us) / 1000);
	rw->images++;
	rw->mets = 0;
	heals_forget(v);
	stand_over(v, 0);
}

/* The asker's process, whose step this is; NULL: there is none, or none any more. */
static struct copy *asker_copy(struct version *v, const struct request *r)
{
	struct rewind *rw = &v->rewind;

	return rw->state == REWIND_STANDS && r->args[2] == rw->last ? copy_of(rw, r->pid) : NULL;
}

int64_t image_stands(struct version *v, const struct request *r)
{
	struct copy *c = asker_copy(v, r);

	if (!c)
		return -EINVAL;
	if (!copies_wait(&v->rewind, c, r))
		return REPLY_LATER;
	/* One that was just being made when the others were asked has not been. */
	if (copies_all(v)) {
		copies_answer(v, 0);
	} else {
		stand_over(v, -EAGAIN);
		image_again(v);
	}
	return REPLY_LATER;
}

int64_t image_made(struct version *v, const struct request *r)
{
	struct copy *c = asker_copy(v, r);

	if (!c)
		return -EINVAL;
	if (!copy_have(v, c, (pid_t)r->args[1])) {
		barred_say(v, "it cannot be copied");
		stand_over(v, -EINVAL);
		return -EINVAL;
	}
	if (copies_wait(&v->rewind, c, r))
		image_keep(v);
	return REPLY_LATER;
}

void rewind_begin(struct version *v)
{
	const struct run_options *o = v->monitor->options;
	bool may = o->rewind && v->index != v->monitor->leader && version_lives(v);
	uint64_t part = o->ring_bytes / CHUNK_SIZE / SHARE << v->rewind.doubled;

	v->brief->images.chunks = may ? (uint32_t)part + 1 : 0;
}

void image_again_look(struct version *v)
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

void stand_late(struct version *v)
{
	MUST(v->rewind.state == REWIND_STANDS);
	say_log("rewind", "%s: its threads did not come to stand", v->name);
	stand_over(v, -EINTR);
	image_again(v);
}
