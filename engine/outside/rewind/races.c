/*
 * Where a follower has differed since its image, how often at each place, and the races
 * that were met: differences that were not met again.
 */
#include <string.h>

#include "engine/abi/table.h"
#include "engine/core/must.h"
#include "engine/outside/kernel/maps.h"
#include "engine/outside/monitor/streams.h"
#include "engine/outside/report/report.h"
#include "engine/outside/rewind/rewind_parts.h"

static const struct window_row *row_of(const struct version *v, const struct request *r)
{
	const struct slot *s = &v->area->slot[r->slot];

	return &s->window[(s->calls - 1) % WINDOW];
}

/* What was at a place of the process: whose that is. */
static void place_write(char *text, size_t size, const char *what, pid_t pid, uint64_t place)
{
	char words[128];

	maps_place(pid, place, words, sizeof(words));
	snprintf(text, size, "%s %s", what, words);
}

static void why_count(struct rewind *rw)
{
	unsigned i = 0;

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

/* Whose code made the call, or crashed. */
void race_note(struct version *v, const struct request *r)
{
	struct rewind *rw = &v->rewind;
	const struct call_desc *d = call_find((long)row_of(v, r)->call);

	place_write(rw->why, sizeof(rw->why), r->args[0] == VERDICT_CRASHED ?
		    signal_word(r->args[1]) : d ? d->name : "a call", r->pid,
		    v->area->slot[r->slot].place);
	why_count(rw);
}

void race_note_lock(struct version *v, const struct request *r)
{
	struct rewind *rw = &v->rewind;

	place_write(rw->why, sizeof(rw->why), "a lock", r->pid, r->args[1]);
	why_count(rw);
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
bool met_count(struct version *v, const struct request *r)
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

/* The number of the event that it differs at, or one behind all where the thread has met all. */
static uint64_t number_of(const struct version *v, const struct request *r)
{
	uint64_t lane = r->args[5], next = 0;

	if (lane_is(v->monitor, lane))
		next = stream_next(v->monitor->realm[lane / LANES].conduct, v->index,
				   (uint32_t)lane % LANES);
	return next ? next : ORDER_MASK;
}

/* What was taken for healed from there on is not. */
static bool heals_lose(struct images *words, int32_t vpid, uint64_t from)
{
	uint32_t had = words->heals;

	while (words->heals && words->healed[words->heals - 1].vpid == vpid &&
	       words->healed[words->heals - 1].until >= from)
		words->heals--;
	return words->heals < had;
}

/*
 * Where it differs further on than before, the try that has just been has healed what is between
 * the two: that is met by it from here on, and others are tried for what is behind.
 */
static bool heals_more(struct version *v, const struct healed *last, const struct healed *now)
{
	struct images *words = &v->brief->images;
	struct rewind *rw = &v->rewind;

	MUST(words->heals <= HEALED_MAX);
	if (!now->try || last->vpid != now->vpid || now->until <= last->until ||
	    words->heals == HEALED_MAX)
		return false;
	words->healed[words->heals++] = (struct healed){ now->vpid, now->try, last->until };
	/* Who comes further may try as often more, but not for a part that was healed before. */
	if (words->heals > rw->most) {
		rw->most = words->heals;
		rw->lost -= rw->lost < HEAL_TRIES ? rw->lost : HEAL_TRIES;
	}
	return true;
}

/* None of these is right: what was taken for healed last may be the cause. */
static bool heals_less(struct images *words, uint32_t since)
{
	if (!words->heals || words->tries - since < HEAL_TRIES)
		return false;
	words->heals--;
	return true;
}

void heal_note(struct version *v, const struct request *r)
{
	struct images *words = &v->brief->images;
	struct healed *last = &v->rewind.differs;
	struct healed now = { v->area->slot[r->slot].vpid, words->tries, number_of(v, r) };

	if (!heals_lose(words, now.vpid, now.until) && !heals_more(v, last, &now) &&
	    !heals_less(words, last->try))
		now.try = last->try;
	*last = now;
}

void heals_forget(struct version *v)
{
	v->brief->images.tries = v->brief->images.heals = 0;
	v->rewind.differs = (struct healed){ 0 };
	v->rewind.lost = v->rewind.most = 0;
}

json_t *rewind_json(const struct version *v)
{
	const struct rewind *rw = &v->rewind;
	json_t *races = json_array();

	MUST(rw->races <= RACES_MAX);
	for (unsigned i = 0; i < rw->races; i++)
		json_array_append_new(races, json_pack("{s:s, s:I}", "place", rw->race[i].text,
						       "times", (json_int_t)rw->race[i].times));
	return json_pack("{s:i, s:i, s:I, s:I, s:o, s:I}", "image",
			 rw->image ? (int)rw->copy[0].pid : 0, "processes",
			 rw->image ? (int)rw->copies : 0,
			 "images", (json_int_t)rw->images, "rewinds",
			 (json_int_t)rw->rewinds, "races", races, "races_elsewhere",
			 (json_int_t)rw->races_more);
}
