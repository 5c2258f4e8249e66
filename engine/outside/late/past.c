/*
 * What befell a session, for status: the longest pause of each kind, how many joined as it ran,
 * and the last that were lost, each with the reason; the row of one that was lost may be
 * another's by now.
 */
#include <string.h>
#include <time.h>

#include "engine/core/must.h"
#include "engine/outside/late/past.h"
#include "engine/outside/monitor/monitor.h"
#include "engine/outside/print/text_json.h"

static const struct pause_name { const char *name, *who, *what; } names[PAUSES] = {
#define PAUSE(name, who, what) { #name, who, what },
#include "engine/outside/late/pauses.def"
#undef PAUSE
};

void past_stood(struct monitor *m, enum pause pause, uint64_t us)
{
	struct pause_count *c = &m->past.pause[pause];

	MUST(pause < PAUSES);
	c->times++;
	c->last_us = us;
	if (us > c->longest_us)
		c->longest_us = us;
}

void past_joined(struct monitor *m)
{
	m->past.joins++;
}

void past_lost(const struct version *v)
{
	struct past *p = &v->monitor->past;
	struct loss *l = &p->loss[p->losses++ % LOSSES_KEPT];

	MUST(v->name[0]);
	l->at = time(NULL);
	memcpy(l->name, v->name, sizeof(l->name));
	memcpy(l->why, v->why, sizeof(l->why));
}

static json_t *pauses_json(const struct past *p)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < PAUSES; i++) {
		const struct pause_count *c = &p->pause[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "kind",
			names[i].name, "who", names[i].who, "for", names[i].what, "times",
			(json_int_t)c->times, "longest_us", (json_int_t)c->longest_us, "last_us",
			(json_int_t)c->last_us));
	}
	return list;
}

static json_t *losses_json(const struct past *p)
{
	uint64_t first = p->losses > LOSSES_KEPT ? p->losses - LOSSES_KEPT : 0;
	json_t *list = json_array();

	for (uint64_t i = first; i < p->losses; i++) {
		const struct loss *l = &p->loss[i % LOSSES_KEPT];

		json_array_append_new(list, json_pack("{s:s, s:o, s:I}", "name", l->name,
						      "why", text_json(l->why), "time",
						      (json_int_t)l->at));
	}
	return list;
}

void past_add(const struct monitor *m, json_t *status)
{
	MUST(json_is_object(status));
	json_object_set_new(status, "pauses", pauses_json(&m->past));
	json_object_set_new(status, "joins", json_integer((json_int_t)m->past.joins));
	json_object_set_new(status, "lost", json_integer((json_int_t)m->past.losses));
	json_object_set_new(status, "losses", losses_json(&m->past));
}
