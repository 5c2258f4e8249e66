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
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/rewind/rewind_parts.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/takeover/takeover.h"

#define LOOK_MS		1

void rewind_word_set(uint32_t *word, uint32_t value)
{
	/* Who sees it sees what was written beside it. */
	PUBLISH(image_wake, word, value);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void rewind_state_begin(struct version *v, enum rewind_state state, unsigned ms)
{
	v->rewind.state = state;
	v->rewind.until_ms = now_ms() + ms;
	monitor_wake_after(v->monitor, LOOK_MS);
}

int64_t rewind_serve(struct version *v, const struct request *r)
{
	switch (r->args[0]) {
	case IMAGE_DUE:
		return image_begin(v);
	case IMAGE_STANDS:
		return image_stands(v, r);
	case IMAGE_MADE:
		return image_made(v, r);
	case IMAGE_WOKE:
		return image_woke(v, r);
	case IMAGE_STILL:
		return image_still(v->monitor);
	case IMAGE_LOST:
		return order_lost(v, r);
	default:
		return -EINVAL;
	}
}

static void state_look(struct version *v)
{
	if (v->rewind.state == REWIND_STANDS && given_over(&v->rewind.stands))
		stand_late(v);
	else if (v->rewind.state > REWIND_STANDS)
		back_look(v, now_ms() >= v->rewind.until_ms);
	if (v->rewind.state != REWIND_NONE)
		monitor_wake_after(v->monitor, LOOK_MS);
}

void rewind_over(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		if (m->version[i].rewind.over)
			copies_kill(&m->version[i].rewind);
}

void rewind_look(struct monitor *m)
{
	/* A process that ends wants a processor: not while another is about to lead. */
	if (!takeover_any(m))
		rewind_over(m);
	for (unsigned i = 1; m->options->rewind && i < m->versions; i++) {
		struct version *v = &m->version[i];
		bool keeps = i != m->leader && v->state == VERSION_FOLLOWS;

		/* One that becomes another build reads nothing: there is nothing to go back to. */
		if (!v->brief || stages_is_changing(m, v))
			continue;
		rewind_begin(v);
		if (keeps) {
			image_again_look(v);
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

/* Nothing goes back to its image any more, whose processes may be there for a while yet. */
static void image_forget(struct version *v)
{
	struct rewind *rw = &v->rewind;

	if (rw->state == REWIND_STANDS)
		stand_over(v, -EINTR);
	if (!rw->image)
		return;
	MUST(v->monitor->conduct);
	/* One that goes on is the follower itself. */
	rw->over = rw->state == REWIND_NONE;
	cursors_forget(v);
	rw->image = 0;
	rw->mets = 0;
}

void rewind_end(struct version *v)
{
	image_forget(v);
	if (v->rewind.over)
		copies_kill(&v->rewind);
}

void rewind_forget_all(struct monitor *m)
{
	for (unsigned i = 0; i < m->versions; i++)
		image_forget(&m->version[i]);
}

bool rewind_ended(struct monitor *m, pid_t pid)
{
	for (unsigned i = 0; i < m->versions; i++) {
		struct rewind *rw = &m->version[i].rewind;

		if (!copies_are(rw, pid) || m->version[i].server == pid)
			continue;
		rewind_end(&m->version[i]);
		image_again(&m->version[i]);
		return true;
	}
	return false;
}
