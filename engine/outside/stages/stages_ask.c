/*
 * What a live update asks of the versions' processes: the leader's threads to their update
 * points, where a twin is made of them; and what they and the twin say (engine/update/session.c).
 *
 * While threads stand the server does: there is little time for it, and none without need.  All
 * that can be done before is: the leader in company, its calls told.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/core/must.h"
#include "engine/core/pairs.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/follow/verdicts.h"
#include "engine/outside/kernel/asker.h"
#include "engine/outside/kernel/process.h"
#include "engine/outside/late/twin.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/report/report.h"
#include "engine/outside/report/reports.h"
#include "engine/outside/report/stack.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/stages/stages_parts.h"
#include "engine/outside/takeover/takeover.h"

_Static_assert(UPDATE_ORDERS <= 1 << UPDATE_BITS, "an order fits its bits");

#define LOOK_MS		5
#define COPIES_TRIED	20	/* while they stand */
#define READY_MS	10000	/* for the leader to come to be in company */
/* Beyond their own limit: the time in which the server itself gives up (STANDS_MS there). */
#define ANSWER_MS	5000

static void order_set(struct monitor *m, struct version *v, enum update_order order)
{
	struct stages *s = &m->stages;
	uint32_t count = (s->words.order >> UPDATE_BITS) + 1;

	MUST(order < UPDATE_ORDERS);
	s->words.order = count << UPDATE_BITS | order;
	v->brief->update.limit_ms = s->words.limit_ms;
	PUBLISH(update_order, &v->brief->update.order, s->words.order);
	syscall(SYS_futex, &v->brief->update.order, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- the leader ---------------------------------------------------------------------- */

void stops_ask(struct monitor *m, struct stages *s)
{
	s->tried++;
	s->stand = false;
	s->end = STAGE_new_lost_happens;
	s->asked_us = 0;
	s->copies = 0;
	s->late = false;
	s->past = STAGE_PAST_none;
	s->why[0] = s->said[0] = s->does[0] = 0;
	s->limit_ms = now_ms() + READY_MS;
	monitor_wake_after(m, 0);
}

void stops_end(struct monitor *m, struct stages *s)
{
	if (s->asked_us)
		order_set(m, leading(m), UPDATE_NONE);
	/* Those that came stood, and clients waited for them, whether all did or not. */
	if (s->asked_us)
		s->stood_us = now_us() - s->asked_us;
	s->asked_us = 0;
	s->stand = false;
}

void stages_leader_goes(struct monitor *m)
{
	struct stages *s = &m->stages;

	MUST(s->stage == STAGE_stops && s->asked_us && s->stand);
	stops_end(m, s);
}

static void give_up(struct monitor *m, struct stages *s, enum stage_event e, const char *why)
{
	snprintf(s->why, sizeof(s->why), "%s", why);
	stops_end(m, s);
	stage_event(m, e);
}

/* It tells what it does, or soon will. */
static void ready_look(struct monitor *m, struct stages *s)
{
	struct follower_options like = { .rules_bank = s->rules, .update = &s->words };
	uint64_t stood_us = 0;
	bool passes = false;
	const char *no = twin_ready(m, &like, &stood_us, &passes);

	if (no && (!passes || now_ms() >= s->limit_ms)) {
		give_up(m, s, passes ? STAGE_not_now_happens : STAGE_refused_happens, no);
		return;
	}
	monitor_wake_after(m, LOOK_MS);
	if (no)
		return;
	twin_want(m);
	s->asked_us = now_us();
	s->limit_ms = now_ms() + s->words.limit_ms + ANSWER_MS;
	order_set(m, leading(m), UPDATE_STAND);
}

/* Its command is its leader's but for the build. */
static void word_set(struct version *v, const struct version *old, const char *to)
{
	char **words = v->argv, *word = old->build_word ? strdup(to) : NULL;

	MUST(v->made);	/* its words are its own */
	if (!word)
		return;
	v->build_word = old->build_word;
	free(words[v->build_word]);
	words[v->build_word] = word;
}

static void twin_look_for(struct monitor *m, struct stages *s)
{
	struct follower_options like = { .rules_bank = s->rules, .update = &s->words };
	struct version *old = leading(m), *v;
	uint32_t was = s->words.order;
	char why[WHY_MAX];
	uint64_t stood_us = 0;
	bool passes = false;

	MUST(s->stage == STAGE_stops && s->asked_us && s->stand);
	s->words.order = ((was >> UPDATE_BITS) + 1) << UPDATE_BITS | UPDATE_CHANGE;
	s->copying = true;
	v = twin_begin(m, &like, &stood_us, why, sizeof(why), &passes);
	s->copying = false;
	if (v) {
		s->old = old;
		s->new = v;
		word_set(v, old, s->words.to);
		stage_event(m, STAGE_made_happens);
	} else if (!passes || ++s->copies >= COPIES_TRIED) {
		give_up(m, s, passes ? STAGE_not_now_happens : STAGE_refused_happens, why);
	} else {
		monitor_wake_after(m, LOOK_MS);
	}
}

void stops_look(struct monitor *m, struct stages *s)
{
	if (!version_alive(leading(m)) || s->reading)
		return;
	if (s->late)
		stage_event(m, STAGE_not_now_happens);
	else if (!s->asked_us)
		ready_look(m, s);
	else if (s->stand)
		twin_look_for(m, s);
	else if (now_ms() >= s->limit_ms)
		give_up(m, s, STAGE_not_now_happens, "the server does not say whether it stands");
	else
		monitor_wake_after(m, LOOK_MS);
}

/* --- what they say ------------------------------------------------------------------- */

/* The word of its command that names its build: of another build it is another. */
static unsigned word_find(const struct version *v, const struct request *r)
{
	char word[UPDATE_PATH];
	unsigned found = 0;

	if (asker_text(r, r->args[2], word, sizeof(word)))
		return 0;
	for (unsigned i = 1; !found && v->argv && v->argv[0] && v->argv[i]; i++)
		if (!strcmp(v->argv[i], word))
			found = i;
	return found;
}

/*
 * What is named is read, and made into code of the server, by who updates: a worker that gave up
 * its rights does not say in its master's place what that is.
 */
static int64_t hello(struct version *v, const struct request *r)
{
	uid_t user = process_user(r->pid);

	if (*v->prepared && user && user != v->prepared_by)
		return -EPERM;
	v->prepared_by = user;
	v->build_word = word_find(v, r);
	return asker_text(r, r->args[1], v->prepared, sizeof(v->prepared));
}

/* Where the thread is that asks, which waits. */
static struct stack_start start_here(const struct version *v, const struct request *r)
{
	const struct slot *s = &v->area->slot[r->slot];
	struct stack_start start = { .place = s->place, .stack = s->stack, .exact = true };

	MUST(r->slot < AREA_THREADS);	/* asker_find has bounded it */
	memcpy(start.saved, s->saved, sizeof(start.saved));
	return start;
}

/* One that is read; what is of a stage that is over by then is of no use. */
struct place_read {
	struct monitor *m;
	struct crash *dying;	/* to be told with it; or NULL */
	bool apart;		/* it is not where what was said happened */
};

static void place_told(void *of, json_t *frames)
{
	struct place_read *p = of;
	struct monitor *m = p->m;
	struct stages *s = &m->stages;
	json_t *place = report_place(frames);

	if (s->reading == p) {
		s->reading = NULL;
		if (p->apart && *json_string_value(place))
			strncat(s->why, "; it is", sizeof(s->why) - strlen(s->why) - 1);
		strncat(s->why, json_string_value(place), sizeof(s->why) - strlen(s->why) - 1);
		monitor_wake_after(m, 0);
	}
	json_decref(place);
	if (p->dying)
		report_dead(p->dying, frames);
	free(p);
}

/* The place is added to what it ended for; until then that is not told. */
static void place_read(struct version *v, const struct request *r, const struct stack_start *start)
{
	struct place_read *p = calloc(1, sizeof(*p));
	struct stages *s = &v->monitor->stages;

	if (!p || !asker_waits(v, r)) {
		free(p);
		return;
	}
	p->m = v->monitor;
	p->apart = r->args[0] == UPDATE_FAILS && r->args[2] & UPDATE_THREAD;
	if (r->args[0] == UPDATE_DIES)
		p->dying = report_dying(v, r, *s->does ? s->does : "on its way");
	s->reading = p;
	stack_read_beside(r->pid, start, place_told, p);
}

/* Why it is not now, and where in the program's code that is: read, too. */
static void why_read(struct version *v, const struct request *r)
{
	struct stages *s = &v->monitor->stages;
	struct stack_start start = { .place = r->args[2], .exact = true };

	if (asker_text(r, r->args[1], s->why, sizeof(s->why)) || !r->args[2])
		return;
	if (r->args[2] == UPDATE_HERE)
		start = start_here(v, r);
	if (r->args[2] & UPDATE_THREAD &&
	    !report_catch(v, (pid_t)(r->args[2] & ~UPDATE_THREAD), &start))
		return;
	place_read(v, r, &start);
}

static int64_t leader_says(struct version *v, const struct request *r)
{
	struct monitor *m = v->monitor;
	struct stages *s = &m->stages;
	const char *why = "its threads stood, and mve was not in time";

	/* One that says something while it is copied does not stand: its twin will find that. */
	if (s->stage != STAGE_stops || !s->asked_us || s->copying || v != leading(m))
		return -EINVAL;
	if (r->args[0] == UPDATE_STANDS) {
		s->stand = true;
		monitor_wake_after(m, 0);
		return 0;
	}
	if (r->args[0] == UPDATE_SERVES) {
		give_up(m, s, STAGE_not_now_happens, why);
		return 0;
	}
	stops_end(m, s);	/* before anything is read: those that stand go on */
	s->late = true;
	snprintf(s->why, sizeof(s->why), "%s", why);
	why_read(v, r);
	monitor_wake_after(m, 0);
	return 0;
}

static int64_t is_new(struct version *v)
{
	struct monitor *m = v->monitor;
	struct stages *s = &m->stages;

	MUST(s->stage == STAGE_updating && v == s->new);
	if (s->dry) {
		snprintf(s->why, sizeof(s->why), "it was a rehearsal, and would have gone well");
		s->end = STAGE_rehearsed_happens;
		follower_drop(v, VERDICT_MATCH, "it was a rehearsal");
		return -ECANCELED;
	}
	snprintf(v->prepared, sizeof(v->prepared), "%s", s->words.to);
	v->prepared_by = s->old->prepared_by;
	order_set(m, v, UPDATE_NONE);
	stage_event(m, STAGE_is_new_happens);
	return 0;
}

static void twin_dies(struct version *v, const struct request *r)
{
	struct stages *s = &v->monitor->stages;
	const struct stack_start start = start_here(v, r);

	if (*s->why)		/* it dies of the first */
		return;
	snprintf(s->why, sizeof(s->why), "killed by %s at address 0x%lx%s%.100s",
		 signal_word(r->args[1]), r->args[2], *s->does ? ", " : "", s->does);
	place_read(v, r, &start);
}

static void twin_fails(struct version *v, const struct request *r)
{
	if (!*v->monitor->stages.why)
		why_read(v, r);
	follower_drop(v, VERDICT_UNSUPPORTED, "it did not become the new build");
}

static int64_t twin_says(struct version *v, const struct request *r)
{
	struct stages *s = &v->monitor->stages;

	if (!stages_is_changing(v->monitor, v))
		return -EINVAL;
	switch (r->args[0]) {
	case UPDATE_SAYS:
		return asker_text(r, r->args[1], s->said, sizeof(s->said));
	case UPDATE_DOES:
		return asker_text(r, r->args[1], s->does, sizeof(s->does));
	case UPDATE_IS_NEW:
		return is_new(v);
	case UPDATE_DIES:
		twin_dies(v, r);
		return 0;
	default:
		if (r->args[0] == UPDATE_NEVER)
			s->end = STAGE_unfit_happens;
		twin_fails(v, r);
		return 0;
	}
}

int64_t stages_serve(struct version *v, const struct request *r)
{
	switch (r->args[0]) {
	case UPDATE_HELLO:
		return hello(v, r);
	case UPDATE_STANDS:
	case UPDATE_LATE:
	case UPDATE_SERVES:
		return leader_says(v, r);
	case UPDATE_SAYS:
	case UPDATE_DOES:
	case UPDATE_IS_NEW:
	case UPDATE_DIES:
	case UPDATE_FAILS:
	case UPDATE_NEVER:
		return twin_says(v, r);
	default:
		return -EINVAL;
	}
}
