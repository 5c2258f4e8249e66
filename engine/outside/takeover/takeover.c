/*
 * Taking over: one version becomes the leader in the place of another.
 *
 * The old leader's threads stop where no call is half told (its `park` bit, and
 * a SIGSYS to each).  Then the streams are switched: its stream has ended, the
 * successor's is empty and goes on from there, and nobody waits for anybody.
 * What is still unread of the old stream the successor reads as a follower;
 * where a process of it comes to the end it asks for its twin's descriptors
 * (take.c) and makes its calls for real.  Only then the twin is killed, or let
 * die of what it crashed of; with --keep the old leader goes on as a follower.
 *
 * A successor may fail in its turn, even before it has taken anything: then the
 * next one takes from whoever still holds the descriptors, see take.c.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/control/control.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/report/report.h"
#include "engine/outside/session/descriptors.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/takeover/take.h"
#include "engine/outside/rewind/rewind.h"
#include "engine/outside/takeover/takeover.h"
#include "engine/outside/takeover/takeover_parts.h"
#include "engine/outside/takeover/taking.h"
#include "engine/outside/takeover/untold.h"

#define LOOK_MS		50
#define SOON_MS		1	/* the same, where somebody waits to hear of it, or nobody rings */

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* --- who asks ------------------------------------------------------------------------- */

bool takeover_any(const struct monitor *m)
{
	return m->move.state != MOVE_IS_idle;
}

bool takeover_wanted(const struct monitor *m)
{
	return m->move.state == MOVE_IS_wanted || m->move.state == MOVE_IS_again;
}

bool takeover_switched(const struct monitor *m)
{
	static const bool new_leads[MOVE_STATES] = {
#define OLD false
#define NEW true
#define STATE(name, streams, ...) [MOVE_IS_##name] = streams,
#include "engine/outside/takeover/moves.def"
#undef OLD
#undef NEW
	};

	return new_leads[m->move.state];
}

/*
 * Who asked for it is told how it ends, when it does: all was read before, so that it is a
 * matter of microseconds, or of many processes, or fails.
 */
static void asked_look(struct monitor *m, struct move *mv)
{
	struct version *to = mv->asked;

	if (!to)
		return;
	if (mv->state == MOVE_IS_receives || mv->state == MOVE_IS_takes) {
		if (!version_alive(to))
			mv->until_ms = 0;
		return;
	}
	mv->asked = NULL;
	control_promoted(m, leading(m) == to ? NULL : to->why);
}

/* --- what begins one ------------------------------------------------------------------ */

/* It fails while the leader that it was to replace, by somebody's wish, stands and can go on. */
static bool successor_lacks(struct move *mv, const struct version *from, const char *cause)
{
	if (mv->state != MOVE_IS_receives || from != mv->to || mv->forced ||
	    !version_alive(mv->from))
		return false;
	MUST(mv->from->state == VERSION_LEAVES);
	snprintf(mv->lacks, sizeof(mv->lacks), "%s", cause);
	return true;
}

bool takeover_want(struct version *from, const char *cause)
{
	struct monitor *m = from->monitor;
	struct move *mv = &m->move;
	enum move_event happens = MOVE_fails;

	MUST(m->conduct);
	if (successor_lacks(mv, from, cause))
		return true;
	if (mv->state == MOVE_IS_idle || mv->state == MOVE_IS_receives ||
	    mv->state == MOVE_IS_takes)
		happens = move_failure(from, cause);
	else if (!takeover_switched(m) && mv->state != MOVE_IS_wanted)	/* planned, perhaps */
		snprintf(mv->next_cause, sizeof(mv->next_cause), "%s", cause);
	takeover_event(m, happens);
	return happens == MOVE_fails;
}

bool takeover_keeps(const struct monitor *m, const struct version *v)
{
	if (takeover_wanted(m) && v->index == m->leader)
		return true;
	return (takeover_wanted(m) || takeover_switched(m)) && v->state == VERSION_LEAVES;
}

/* Why one that lives does not go on in the leader's place; NULL: it follows, or is none. */
static const char *missed_why(const struct monitor *m, const struct version *v)
{
	if (v->index == m->leader || !version_lives(v))
		return NULL;
	if (v->state == VERSION_STARTING)
		return "it has not begun to follow";
	return m->conduct->following >> v->index & 1 ? successor_barred(m, v) : NULL;
}

void takeover_missed(const struct version *from, const char *cause)
{
	const struct monitor *m = from->monitor;

	for (unsigned i = 0; i < m->versions; i++) {
		const char *why = missed_why(m, &m->version[i]);

		if (why)
			say_error(NULL, "%s: %s %s; %s does not go on in its place: %s",
				  m->session.name, from->name, cause, m->version[i].name, why);
	}
}

const char *takeover_refused(struct monitor *m, const struct version *to, bool *passes)
{
	*passes = false;
	if (to->state != VERSION_FOLLOWS && to->state != VERSION_STARTING &&
	    to->state != VERSION_LEAVES)
		return "it has ended, or leads";
	if (to->state == VERSION_FOLLOWS && !version_alive(to))
		return "it has ended";
	if (successor_barred(m, to))
		return successor_barred(m, to);
	*passes = true;
	if (takeover_any(m) || to->state == VERSION_LEAVES)
		return "another takeover is under way";
	if (to->state == VERSION_STARTING)
		return "it has not begun";
	if (stages_is_changing(m, to))
		return "it is on its way into the new build";
	if (rewind_busy(m))
		return "a follower tries again what it differs in";
	if (!old_stream_over(m, to))
		return "another follower still reads what it told when it led";
	if (!successor_settled(to))
		return "some of its threads do not follow yet";
	if (takeover_any(m))	/* the leader has crashed while these were waited for */
		return "another takeover is under way";
	if (rewind_busy(m))	/* or a follower has come to differ again */
		return "a follower tries again what it differs in";
	return successor_has_room(m, to) ? NULL : "a process of it has a hard limit of descriptors "
		"(RLIMIT_NOFILE) that the leader's do not fit into";
}

int takeover_promote(struct monitor *m, struct version *to, enum promotion how, char *why,
		     size_t size)
{
	bool keep = how == PROMOTE_KEEP, passes;
	const char *no = takeover_refused(m, to, &passes);
	struct move *mv = &m->move;

	snprintf(why, size, "%s", no ? no : "");
	if (no)
		return -EBUSY;
	move_clear(m, to, keep ? "follows it" : "replaced", now_us());
	mv->keep = keep;
	mv->differs = how == PROMOTE_DIFFERS;
	/* By policy: a thread of it waits to hear that it is right, and nobody else. */
	mv->asked = mv->differs ? NULL : to;
	takeover_event(m, MOVE_asked);
	if (leading(m) == to)
		return 0;
	mv->asked = NULL;
	snprintf(why, size, "%s", mv->cause);
	return -ETIMEDOUT;
}

/* --- before there is one ---------------------------------------------------------------- */

#define PAGE		4096
#define STACK_USED	(8 * PAGE)

void takeover_own(void *at, size_t size)
{
	volatile char *first = at, *last = first + size - 1;

	MUST(size);
	for (volatile char *c = first; c < last; c += PAGE)
		*c = *c;
	*last = *last;		/* its page may be one more */
}

/* What it uses of its stack, and what the kernel writes of it when it goes on. */
void takeover_thread(pthread_t thread)
{
	pthread_attr_t is;
	size_t size = 0;
	void *at = NULL;

	if (pthread_getattr_np(thread, &is))
		return;
	if (!pthread_attr_getstack(&is, &at, &size) && size > STACK_USED)
		madvise((char *)at + size - STACK_USED, STACK_USED, MADV_POPULATE_WRITE);
	pthread_attr_destroy(&is);
}

/* Where its stream will begin: its memory is there, and ours to see. */
static void follower_ready(struct monitor *m, unsigned version)
{
	version_closed_note(&m->version[version]);
	for (uint32_t r = 0; r < m->realms; r++) {
		struct section *its = realm_part(m, r, version);
		uintptr_t lanes = (uintptr_t)its->lane & ~(uintptr_t)(PAGE - 1);

		madvise(its, PAGE, MADV_POPULATE_WRITE);
		madvise((void *)lanes, PAGE, MADV_POPULATE_WRITE);
	}
}

void takeover_ready(struct monitor *m)
{
	takeover_own(&m->move, sizeof(m->move));
	takeover_own(&m->leader, sizeof(m->leader));
	takers_room(&m->move);	/* an allocator may tidy up first, which takes 50 us */
	for (unsigned i = 0; i < m->versions; i++) {
		takeover_own(&m->version[i], offsetof(struct version, execs));
		takeover_own(&m->version[i].rewind, 1);
	}
	signal_word(0);		/* the page of its word */
	takeover_thread(leading(m)->bell_thread);
	descriptors_ready();
	fetch_ready();
	ahead_ready();
	asker_ready();
	for (unsigned i = 0; i < m->versions; i++)
		if (m->conduct->following >> i & 1)
			follower_ready(m, i);
	version_closed_note(leading(m));
	server_elsewhere(leading(m));
	thread_status_ready(leading(m)->server);
}

/* --- while it lasts ------------------------------------------------------------------- */

/* Those that crashed and were to die by themselves. */
static void dying_look(struct monitor *m)
{
	uint64_t now = now_ms();

	for (unsigned i = 0; i < m->versions; i++) {
		struct version *v = &m->version[i];

		if (!v->dying_ms)
			continue;
		if (v->dying_ms > now) {
			monitor_wake_after(m, (unsigned)(v->dying_ms - now));
			continue;
		}
		v->dying_ms = 0;
		version_kill(v);
	}
}

void takeover_look(struct monitor *m)
{
	struct move *mv = &m->move;

	dying_look(m);
	asked_look(m, mv);
	if (!takeover_any(m))
		ahead_end();
	if (takeover_wanted(m))
		takeover_event(m, MOVE_looked);
	if (!takeover_switched(m))
		return;
	if (mv->state == MOVE_IS_receives)
		takeover_event(m, MOVE_looked);
	if (mv->state == MOVE_IS_takes)
		takeover_event(m, MOVE_looked);
	asked_look(m, mv);
	if (takeover_any(m))
		monitor_wake_after(m, takeover_wanted(m) ? 0 :
				      mv->asked || takers_unasked(mv) ? SOON_MS : LOOK_MS);
}
