/*
 * A live update by a twin, from the command to its end: which stage it is in, and what is done
 * at each change (stages.def).  The way of the twin into the new build is engine/update's, what
 * the leader's threads are asked for stages_ask.c's; failover, promotion and comparing know
 * nothing of updates.
 *
 * Whatever becomes of the new version before it leads, the old one serves on; whatever becomes
 * of the old one then, the new one does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/core/must.h"
#include "engine/outside/follow/followers.h"
#include "engine/outside/monitor/say.h"
#include "engine/outside/monitor/versions.h"
#include "engine/outside/follow/pace.h"
#include "engine/outside/print/text_json.h"
#include "engine/outside/rules/rules_at_work.h"
#include "engine/outside/stages/stages.h"
#include "engine/outside/stages/stages_parts.h"
#include "engine/outside/takeover/takeover.h"

#define LOOK_MS		50

typedef void stage_act(struct monitor *m, struct stages *s);

static const char *const titles[] = {
#define STAGE(name, title, ...) [STAGE_##name] = title,
#include "engine/outside/stages/stages.def"
};

static const char *const pasts[] = {
#define PAST(name, title, ...) [STAGE_PAST_##name] = title,
#include "engine/outside/stages/stages.def"
};

/* --- what is done at a change -------------------------------------------------------- */

static void say(const struct monitor *m, const char *hint, const char *what, const char *why)
{
	say_error(hint, "%s: update: %s%s%s", m->session.name, what, *why ? ": " : "", why);
}

/* It is over: what became of it is said now, and to who asks later. */
static void over(struct monitor *m, struct stages *s, enum stage_past past, const char *hint)
{
	s->past = past;
	say(m, hint, pasts[past], s->why);
}

static void say_aborted(struct monitor *m, struct stages *s)
{
	snprintf(s->why, sizeof(s->why), "by mve abort");
	over(m, s, STAGE_PAST_ended, NULL);
}

static void stops_abort(struct monitor *m, struct stages *s)
{
	stops_end(m, s);
	say_aborted(m, s);
}

static void say_made(struct monitor *m, struct stages *s)
{
	char text[WHY_MAX];

	snprintf(text, sizeof(text), "%s becomes the new build; the server stood for %.1f ms",
		 s->new->name, (double)s->stood_us / 1000);
	say(m, NULL, text, "");
}

static void say_failed(struct monitor *m, struct stages *s)
{
	bool serves = version_alive(leading(m)) && !leading(m)->gone;

	over(m, s, STAGE_PAST_failed, serves ? "the old version serves on" : NULL);
}

static void say_rehearsed(struct monitor *m, struct stages *s)
{
	over(m, s, STAGE_PAST_rehearsed, NULL);
}

static void say_follows(struct monitor *m, struct stages *s)
{
	say(m, "mve promote lets it lead", "old leads; the new version follows",
	    s->new->name);
	s->equal_ms = 0;
}

static void say_led(struct monitor *m, struct stages *s)
{
	say(m, "mve commit ends the old version, mve abort goes back to it",
	    "new leads; the old version follows", s->old->name);
	s->equal_ms = 0;
}

static void say_over(struct monitor *m, struct stages *s)
{
	snprintf(s->why, sizeof(s->why), "%s ended: %s", s->old->name, s->old->why);
	over(m, s, STAGE_PAST_done, NULL);
	s->old = s->new = NULL;
}

static void say_back(struct monitor *m, struct stages *s)
{
	snprintf(s->why, sizeof(s->why), "%s ended: %s", s->new->name, s->new->why);
	over(m, s, STAGE_PAST_undone, NULL);
	s->old = s->new = NULL;
}

/* It failed before it was compared: another time it may go well. */
static void weigh(struct monitor *m, struct stages *s)
{
	MUST(s->stage == STAGE_alone);
	if (!s->tries) {
		say_failed(m, s);
		return;
	}
	s->tries--;
	s->again_ms = now_ms() + s->pause_ms;
	s->stage = STAGE_again;
	say(m, NULL, "tried again soon", s->why);
}

static void new_end(struct monitor *m, struct stages *s)
{
	MUST(s->new && s->new->index != m->leader);
	follower_drop(s->new, VERDICT_MATCH, "by mve abort");
	s->old = s->new = NULL;
	say_aborted(m, s);
}

static void old_promote(struct monitor *m, struct stages *s)
{
	char why[WHY_MAX];

	MUST(s->old && s->old->index != m->leader);
	if (takeover_promote(m, s->old, PROMOTE_END, why, sizeof(why)))
		say(m, NULL, "the old version cannot lead now", why);
}

/* --- the table ----------------------------------------------------------------------- */

enum { ON_NEVER, ON_IS };

static const struct {
	int is;
	stage_act *act;
	enum stage next;
} on[STAGES][STAGE_EVENTS] = {
#define ON(stage, event, act, next) \
	[STAGE_##stage][STAGE_##event##_happens] = { ON_IS, act, STAGE_##next },
#include "engine/outside/stages/stages.def"
};

void stage_event(struct monitor *m, enum stage_event e)
{
	struct stages *s = &m->stages;
	enum stage was = s->stage;

	MUST(s->stage < STAGES && e < STAGE_EVENTS && on[s->stage][e].is == ON_IS);
	s->reading = NULL;	/* what is over waits for no word of it */
	s->since = time(NULL);
	s->since_ms = now_ms();
	s->stage = on[was][e].next;
	on[was][e].act(m, s);
	say_log("update", "%s: %s, then %s", m->session.name, titles[was], titles[s->stage]);
}

/* --- what is seen of the versions ---------------------------------------------------- */

static bool leads(const struct monitor *m, const struct version *v)
{
	return m->leader == v->index && !takeover_any(m);
}

/* Who asked has set it so much time: a transformation may have no end. */
static void within_look(struct monitor *m, struct stages *s)
{
	uint64_t now = now_ms(), end = s->since_ms + s->within_ms;

	MUST(s->stage == STAGE_updating && s->new);
	if (!s->within_ms || !version_lives(s->new))
		return;
	if (now < end) {
		monitor_wake_after(m, (unsigned)(end - now));
		return;
	}
	snprintf(s->why, sizeof(s->why), "it was not the new version within %lu s%s%.100s",
		 s->within_ms / 1000, *s->does ? "; it was " : "", s->does);
	follower_drop(s->new, VERDICT_LAGGING, "it did not become the new build in its time");
}

static void new_look(struct monitor *m, struct stages *s)
{
	MUST(s->new && s->old && s->new != s->old);
	if (!version_lives(s->new) && s->reading)
		return;
	if (!version_lives(s->new)) {
		if (!*s->why)
			snprintf(s->why, sizeof(s->why), "%s%s%.100s", s->new->why,
				 s->stage == STAGE_updating && *s->does ? "; it was " : "",
				 s->stage == STAGE_updating ? s->does : "");
		stage_event(m, s->stage == STAGE_updating ? s->end : STAGE_new_lost_happens);
		s->old = s->new = NULL;
	} else if (s->stage == STAGE_old_leads && leads(m, s->new)) {
		stage_event(m, STAGE_new_led_happens);
	}
}

static void old_look(struct monitor *m, struct stages *s)
{
	MUST(s->new && s->old && s->new != s->old);
	if (leads(m, s->old))
		stage_event(m, STAGE_old_led_happens);
	else if (!version_lives(s->old))
		stage_event(m, STAGE_old_lost_happens);
}

/* --- by itself ----------------------------------------------------------------------- */

/* It has read all for so long; or it is looked at again. */
static bool is_equal_for(struct monitor *m, struct stages *s, const struct version *v, uint64_t ms)
{
	uint64_t now = now_ms();

	monitor_wake_after(m, LOOK_MS);
	if (!s->equal_ms || v->state != VERSION_FOLLOWS || pace_behind_ms(m, v) > PACE_EVEN_MS)
		s->equal_ms = now;
	return now - s->equal_ms >= ms;
}

/* What is against it passes, or ends the new version: it is tried again. */
static void auto_look(struct monitor *m, struct stages *s)
{
	char why[WHY_MAX];
	bool passes;

	if (takeover_any(m))
		return;
	if (s->stage == STAGE_old_leads && s->promote_ms &&
	    is_equal_for(m, s, s->new, s->promote_ms) && !takeover_refused(m, s->new, &passes)) {
		s->equal_ms = 0;
		takeover_promote(m, s->new, PROMOTE_KEEP, why, sizeof(why));
	} else if (s->stage == STAGE_new_leads && s->commit_ms &&
		   is_equal_for(m, s, s->old, s->commit_ms)) {
		follower_drop(s->old, VERDICT_MATCH, "by --auto");
	}
}

void stages_look(struct monitor *m)
{
	struct stages *s = &m->stages;

	if (s->stage == STAGE_alone || m->finishing || m->stopping)
		return;
	if (s->stage == STAGE_again && now_ms() >= s->again_ms)
		stage_event(m, STAGE_due_happens);
	if (s->stage == STAGE_again)
		monitor_wake_after(m, LOOK_MS);
	if (s->stage == STAGE_stops)
		stops_look(m, s);
	if (s->stage == STAGE_updating)
		within_look(m, s);
	if (s->stage == STAGE_updating || s->stage == STAGE_old_leads)
		new_look(m, s);
	if (s->stage == STAGE_new_leads)
		old_look(m, s);
	auto_look(m, s);
}

/* --- commands ------------------------------------------------------------------------ */

static void rules_drop(struct stages *s)
{
	free(s->rules);
	free(s->reverse);
	s->rules = s->reverse = NULL;
}

static const char *update_refused(const struct monitor *m, const struct update_wish *w,
				  bool *passes)
{
	const struct stages *s = &m->stages;

	*passes = false;
	if (s->stage != STAGE_alone)
		return "an update is under way: mve commit or mve abort ends it";
	if (!m->version[m->leader].prepared[0])
		return "its server is not prepared for updates, or was begun with followers "
		       "(docs/updating.md)";
	if (strlen(w->to) >= UPDATE_PATH || strlen(w->xform) >= UPDATE_PATH)
		return "a path is too long";
	*passes = takeover_any(m);
	return *passes ? "a takeover is under way" : NULL;
}

const char *stages_update(struct monitor *m, const struct update_wish *w, bool *passes)
{
	struct stages *s = &m->stages;
	const char *no = update_refused(m, w, passes);

	if (no) {
		free(w->rules);
		free(w->reverse);
		return no;
	}
	rules_drop(s);
	*s = (struct stages){
		.rules = w->rules, .reverse = w->reverse, .tries = w->tries,
		.pause_ms = w->pause_ms, .promote_ms = w->promote_ms, .commit_ms = w->commit_ms,
		.within_ms = w->within_ms,
		.dry = w->dry, .words = { .limit_ms = w->limit_ms, .order = s->words.order },
	};
	snprintf(s->words.to, sizeof(s->words.to), "%s", w->to);
	snprintf(s->words.xform, sizeof(s->words.xform), "%s", w->xform);
	stage_event(m, STAGE_asked_happens);
	return NULL;
}

/* Who leads, and its stage, are of the same time; NULL: or why not. */
static const char *settled(struct monitor *m, bool *passes)
{
	*passes = takeover_any(m);
	if (m->finishing || m->stopping)
		return "the session ends";
	if (!*passes)
		stages_look(m);
	*passes = takeover_any(m);
	return *passes ? "a takeover is under way" : NULL;
}

const char *stages_abort(struct monitor *m, bool *passes)
{
	struct stages *s = &m->stages;
	const char *no = settled(m, passes);

	if (no)
		return no;
	if (s->stage == STAGE_alone && s->past == STAGE_PAST_done)
		return "the update is done, its old version gone: mve update goes back to a build";
	if (s->stage == STAGE_alone)
		return "no update is under way";
	if (s->stage == STAGE_new_leads)
		no = takeover_refused(m, s->old, passes);
	if (!no)
		stage_event(m, STAGE_aborted_happens);
	return no;
}

const char *stages_commit(struct monitor *m, bool *passes)
{
	struct stages *s = &m->stages;
	const char *no = settled(m, passes);

	if (no)
		return no;
	if (s->stage == STAGE_old_leads)
		return "the old version leads: mve promote comes before";
	if (s->stage == STAGE_alone)	/* the old one is gone, whoever ended it */
		return s->past == STAGE_PAST_done ? NULL : "no update is under way";
	if (s->stage != STAGE_new_leads)
		return "the new version is not there yet: mve promote comes before";
	MUST(s->old && s->old->index != m->leader);
	follower_drop(s->old, VERDICT_MATCH, "by mve commit");
	return NULL;
}

struct version *stages_next(struct monitor *m)
{
	return m->stages.stage == STAGE_old_leads ? m->stages.new : NULL;
}

const struct rules_bank *stages_reverse(const struct monitor *m, const struct version *v)
{
	return v == m->stages.old ? m->stages.reverse : NULL;
}

void stages_place(struct monitor *m, const char *why, const char *place)
{
	struct stages *s = &m->stages;
	size_t n = strlen(s->why), tail = strlen(why);

	if (tail && n >= tail && !strcmp(s->why + n - tail, why))
		strncat(s->why, place, sizeof(s->why) - n - 1);
}

bool stages_is_changing(const struct monitor *m, const struct version *v)
{
	return m->stages.stage == STAGE_updating && v == m->stages.new;
}

/* There is no new version yet, and it has not failed for good. */
static bool is_coming(const struct stages *s)
{
	return s->stage == STAGE_again || s->stage == STAGE_stops || s->stage == STAGE_updating;
}

json_t *stages_json(struct monitor *m)
{
	const struct stages *s = &m->stages;

	if (!s->since && !leading(m)->prepared[0])
		return NULL;
	return json_pack("{s:s, s:s*, s:s*, s:o, s:s, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:b, s:b}",
			 "stage", titles[s->stage],
			 "old", s->old ? s->old->name : NULL, "new", s->new ? s->new->name : NULL,
			 "build", text_json(leading(m)->prepared), "to", s->words.to,
			 "seconds", (json_int_t)(s->since ? time(NULL) - s->since : 0),
			 "tried", (json_int_t)s->tried, "stood_us", (json_int_t)s->stood_us,
			 "tries_left", (json_int_t)s->tries, "past", pasts[s->past], "why",
			 text_json(s->why), "said", text_json(s->said),
			 "busy", s->stage != STAGE_alone, "coming", is_coming(s));
}
